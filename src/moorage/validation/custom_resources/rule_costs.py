"""Validates the expressions in a schema: they must compile, and stay within the cost limits.

The cost of a rule is that of one evaluation, times how often its schema can occur in an object.

# cardinality: how often values of a schema can occur in an object; None if unbounded
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from moorage.api.field_path import Path
from moorage.api.json_schema import Schema
from moorage.cel.lang.costs import UNBOUNDED
from moorage.validation.custom_resources.rule_compiler import (
    RULES,
    SELF_TYPE,
    CompiledRule,
    cardinality_max,
    compile_rules,
)
from moorage.validation.custom_resources.rule_types import decl_type
from moorage.validation.custom_resources.structural import structural
from moorage.validation.errors import (
    EXPRESSIONS_BYTES_MAX,
    ErrorList,
    forbidden,
    internal,
    invalid,
    may_compile,
)

RULE_COST_MAX: Final = 10_000_000
SCHEMA_COST_MAX: Final = 100_000_000
_NAMED_MAX: Final = 4  # of the most expensive rules
_TRY = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


class _Place(NamedTuple):
    """Where a schema is."""

    path: Path
    cardinality: int | None
    no_old_self: Path | None = None  # what makes old values unknown
    is_resource: bool = False


class _Check:
    """The check of one schema, with the costs of its rules so far."""

    def __init__(self, *, ignores_costs: bool) -> None:
        self._ignores_costs = ignores_costs
        self._total = 0
        self._expensive: list[tuple[int, Path]] = []
        self.errors: ErrorList = []

    def visit(self, tree: Schema, place: _Place) -> None:
        """Check a schema and all schemas below it."""
        if tree.get(RULES):
            self._check_rules(tree, place)
        below = _Place(
            place.path, _product(place.cardinality, _occurrences(tree)), place.no_old_self
        )
        additional, items = tree.get("additionalProperties"), tree.get("items")
        if isinstance(additional, dict):
            self.visit(additional, _at(below, "additionalProperties", additional))
        for name, each in tree.get("properties", {}).items():
            path = place.path.child("properties").key(name)
            self.visit(each, below._replace(path=path, is_resource=_is_embedded(each)))
        if isinstance(items, dict):
            if tree.get("x-kubernetes-list-type") != "map" and below.no_old_self is None:
                below = below._replace(no_old_self=place.path)
            self.visit(items, _at(below, "items", items))

    def finish(self, path: Path) -> ErrorList:
        """Return all errors, with those of the whole schema."""
        if self._total > SCHEMA_COST_MAX:
            words = (
                "contributed to estimated rule cost total exceeding cost limit for entire "
                "OpenAPIv3 schema"
            )
            expensive = sorted(self._expensive, key=lambda each: -each[0])[:_NAMED_MAX]
            self.errors += [forbidden(each, words) for _, each in expensive]
            name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
            self.errors.append(forbidden(path, _too_costly(name, self._total, SCHEMA_COST_MAX)))
        return self.errors

    def _check_rules(self, tree: Schema, place: _Place) -> None:
        path = place.path.child(RULES)
        for index, rule in enumerate(tree[RULES]):
            if not may_compile(rule["rule"]) or not may_compile(rule.get("messageExpression", "")):
                words = (
                    f"all expressions together may not have more than {EXPRESSIONS_BYTES_MAX} bytes"
                )
                self.errors.append(forbidden(path.index(index).child("rule"), words))
                return
        schema = structural(tree)
        declared = decl_type(schema, SELF_TYPE, is_resource=place.is_resource)
        if declared is None:
            words = (
                "internal error: failed to construct type information for x-kubernetes-validations "
                "rules: unable to convert structural schema to CEL declarations"
            )
            self.errors.append(internal(path, words))
            return
        times = place.cardinality
        if times is None:
            times = cardinality_max(declared.encoded_min)
        for index, compiled in enumerate(compile_rules(schema, declared)):
            self._check_rule(compiled, path.index(index), times, place)

    def _check_rule(self, rule: CompiledRule, path: Path, times: int, place: _Place) -> None:
        where, words = path.child("rule"), path.child("messageExpression")
        self._count(where, min(rule.cost_max * times, UNBOUNDED), "estimated rule cost")
        if rule.error:
            self.errors.append(invalid(where, _go_rule(rule), rule.error))
        if rule.message_error:
            self.errors.append(invalid(words, _go_rule(rule), rule.message_error))
        elif rule.message_program is not None:
            self._count(words, rule.message_cost_max, "estimated messageExpression cost")
        if rule.uses_old_self and place.no_old_self is not None:
            fact = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{place.no_old_self}"
            )
            self.errors.append(invalid(where, rule.given["rule"], fact))
        if not rule.uses_old_self and "optionalOldSelf" in rule.given:
            fact = "may not be set if oldSelf is not used in rule"
            value = rule.given["optionalOldSelf"]
            self.errors.append(invalid(path.child("optionalOldSelf"), value, fact))

    def _count(self, path: Path, cost: int, name: str) -> None:
        if cost > RULE_COST_MAX and not self._ignores_costs:
            self.errors.append(forbidden(path, _too_costly(name, cost, RULE_COST_MAX)))
        self._total = min(self._total + cost, UNBOUNDED)
        if cost >= SCHEMA_COST_MAX // 100:
            self._expensive.append((cost, path))


def validate_expressions(
    tree: Schema,
    path: Path,
    *,
    is_unchanged: bool,
) -> ErrorList:
    """Validate all rules of a schema."""
    check = _Check(ignores_costs=is_unchanged)
    check.visit(tree, _Place(path, 1, is_resource=True))
    return check.finish(path)


def _go_rule(rule: CompiledRule) -> dict[str, Any]:
    """Return a rule as Kubernetes prints it."""
    given = rule.given
    return {
        "Rule": given["rule"],
        "Message": given.get("message", ""),
        "MessageExpression": given.get("messageExpression", ""),
        "Reason": given.get("reason"),
        "FieldPath": given.get("fieldPath", ""),
        "OptionalOldSelf": given.get("optionalOldSelf"),
    }


def _at(place: _Place, step: str, tree: Schema) -> _Place:
    return place._replace(path=place.path.child(step), is_resource=_is_embedded(tree))


def _is_embedded(tree: Schema) -> bool:
    return bool(tree.get("x-kubernetes-embedded-resource", False))


def _occurrences(tree: Schema) -> int | None:
    """Return how many values may be directly below a value of a schema."""
    match tree.get("type"):
        case "object" if isinstance(tree.get("additionalProperties"), dict):
            return tree.get("maxProperties")
        case "array":
            return tree.get("maxItems")
    return 1


def _product(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else min(first * second, UNBOUNDED)


def _too_costly(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_TRY}"
