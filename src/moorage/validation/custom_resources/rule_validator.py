"""Evaluates the rules of a schema on objects.

A rule is evaluated for every value of its schema that is not null. All rules of an object share a
cost budget. Rules that read `oldSelf` are evaluated only if there is an old value. Failures of
other rules on unchanged values are warnings (ratcheting); errors of an evaluation stay errors.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from moorage.api.field_path import MapKey, Path
from moorage.cel.lang.program import Evaluated, Program
from moorage.cel.lang.values import NONE, Optional
from moorage.kit.go_quote import go_quote
from moorage.validation.custom_resources.correlation import (
    Correlated,
    item_with_key_of,
    items_by_key,
)
from moorage.validation.custom_resources.rule_compiler import (
    OLD_SELF,
    RULES,
    SELF,
    SELF_TYPE,
    CompiledRule,
    compile_rules,
)
from moorage.validation.custom_resources.rule_types import (
    DeclType,
    InvalidData,
    cel_value,
    decl_type,
    escaped,
)
from moorage.validation.custom_resources.schema_values import NOWHERE
from moorage.validation.custom_resources.structural import Structural
from moorage.validation.errors import (
    OMITTED,
    ErrorList,
    FieldError,
    duplicate,
    forbidden,
    ignore,
    invalid,
    required,
)

CALL_COST_MAX: Final = 1_000_000
OBJECT_COST_MAX: Final = 10_000_000
MESSAGE_BYTES_MAX: Final = 5 * 1024
_SPENT = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"


class SpentError(Exception):
    """The budget of an object is spent, so evaluation stops."""


class _Ratchet:
    """Where a value is in the correlation of new and old objects."""

    __slots__ = ("here", "nearest")

    def __init__(self, here: Correlated | None, nearest: Correlated | None) -> None:
        self.here, self.nearest = here, nearest

    @property
    def ignores(self) -> bool:
        """Whether failures are ignored, because the value is unchanged."""
        known = self.here if self.here is not None else self.nearest
        return known is not None and known.is_unchanged

    def key(self, name: str) -> _Ratchet:
        """Return the place of a member."""
        if self.here is None:
            return self
        if self.nearest is None and name in ("apiVersion", "kind"):
            return _Ratchet(None, None)
        return _Ratchet(self.here.key(name), self.here)

    def index(self, position: int) -> _Ratchet:
        """Return the place of an item."""
        return self if self.here is None else _Ratchet(self.here.index(position), self.here)


class _Evaluation:
    """The evaluation of all rules for one object."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.errors: ErrorList = []

    def spend(self, cost: int) -> bool:
        """Spend a cost; return whether it was within the budget."""
        if cost > self.budget:
            return False
        self.budget -= cost
        return True


class RuleValidator:
    """The rules of one node of a schema, and of all nodes below that have rules."""

    def __init__(self, schema: Structural, declared: DeclType, *, is_resource: bool) -> None:
        self._schema = schema
        self._declared = declared
        self._is_resource = is_resource
        self._rules = compile_rules(schema, declared) if schema.tree.get(RULES) else []
        self._items = _below(schema.items, declared.elements)
        self._additional = _below(schema.additional_schema, declared.elements)
        fields = declared.fields or {}
        found = {
            name: _below(each, fields.get(escaped(name) or ""))
            for name, each in schema.properties.items()
        }
        self._properties = {name: each for name, each in found.items() if each is not None}
        self._uses_old_self = any(rule.uses_old_self for rule in self._rules)

    @property
    def has_rules(self) -> bool:
        """Whether this node or one below has a rule."""
        return bool(self._rules or self._items or self._additional or self._properties)

    def validate(
        self,
        value: Any,
        correlated: Correlated | None,
        path: Path | None = None,
        budget: int = OBJECT_COST_MAX,
    ) -> ErrorList:
        """Return the errors of a new object, or of a changed one."""
        evaluation = _Evaluation(budget)
        old = None if correlated is None else correlated.old
        with suppress(SpentError):
            self._visit(value, old, path, _Ratchet(correlated, None), evaluation)
        return evaluation.errors

    def _visit(
        self, value: Any, old: Any, path: Path | None, ratchet: _Ratchet, evaluation: _Evaluation
    ) -> None:
        if value is None:
            return
        if self._rules:
            self._evaluate(value, old, path, ratchet, evaluation)
        if isinstance(value, list) and self._items is not None:
            before = items_by_key(old, self._schema)
            for index, item in enumerate(value):
                was = item_with_key_of(item, before, self._schema)
                place = Path(index, path)
                self._items._visit(item, was, place, ratchet.index(index), evaluation)
        elif isinstance(value, dict):
            self._visit_members(value, old, path, ratchet, evaluation)

    def _visit_members(
        self, value: Any, old: Any, path: Path | None, ratchet: _Ratchet, evaluation: _Evaluation
    ) -> None:
        before = old if isinstance(old, dict) else {}
        for name, member in value.items():
            was, place = before.get(name), ratchet.key(name)
            if self._additional is not None:
                here = Path(MapKey(name), path)
                self._additional._visit(member, was, here, place, evaluation)
            if (declared := self._properties.get(name)) is not None:
                declared._visit(member, was, Path(name, path), place, evaluation)

    def _evaluate(
        self, value: Any, old: Any, path: Path | None, ratchet: _Ratchet, evaluation: _Evaluation
    ) -> None:
        if evaluation.budget <= 0:
            evaluation.errors.append(self._fault(path, _SPENT))
            raise SpentError
        try:
            variables: dict[str, Any] = {SELF: self._value(value)}
            before = self._value(old) if self._uses_old_self and old is not None else None
        except InvalidData as error:
            evaluation.errors.append(self._fault(path, str(error)))
            return
        for rule in self._rules:
            if rule.program is None:
                if rule.error:
                    evaluation.errors.append(self._fault(path, f"rule compile error: {rule.error}"))
                continue
            if rule.uses_old_self and old is None and not rule.allows_no_old_self:
                continue
            here = dict(variables)
            if rule.allows_no_old_self:
                here[OLD_SELF] = NONE if old is None else Optional(before)
            elif old is not None:
                here[OLD_SELF] = before
            outcome = self._outcome(rule, here, path, evaluation)
            if outcome.error is not None:
                evaluation.errors.append(self._evaluation_fault(outcome.error, rule, path))
            elif outcome.value is not True:
                failure = self._failure(rule, here, value, path, evaluation)
                if rule.uses_old_self or not ratchet.ignores:
                    evaluation.errors.append(failure)
                else:
                    ignore(failure)

    def _value(self, value: Any) -> Any:
        return cel_value(value, self._schema, is_resource=self._is_resource)

    def _fault(self, path: Path | None, words: str) -> FieldError:
        return invalid(path or NOWHERE, self._schema.type, words)

    def _outcome(
        self,
        rule: CompiledRule,
        variables: dict[str, Any],
        path: Path | None,
        evaluation: _Evaluation,
    ) -> Evaluated:
        """Return what a rule evaluates to; raise SpentError after one that costs too much."""
        assert rule.program is not None
        outcome = rule.program.evaluate(variables, cost_limit=CALL_COST_MAX)
        error = outcome.error
        if error is not None and error.startswith(_TOO_COSTLY):
            words = (
                f"'{error}': no further validation rules will be run due to call cost exceeds "
                f"limit for rule: {rule.text}"
            )
            evaluation.errors.append(self._fault(path, words))
            raise SpentError
        if not evaluation.spend(outcome.cost or 0):
            evaluation.errors.append(self._fault(path, _SPENT))
            raise SpentError
        return outcome

    def _failure(
        self,
        rule: CompiledRule,
        variables: dict[str, Any],
        value: Any,
        path: Path | None,
        evaluation: _Evaluation,
    ) -> FieldError:
        """Return the error of a failed rule."""
        detail = self._message(rule, variables, path, evaluation)
        shown = OMITTED if self._schema.type in ("object", "array") else value
        place = path or NOWHERE
        if rule.field_path is not None:
            place = Path(str(rule.field_path), path)
        return _error_for(rule.given.get("reason"), place, shown, detail)

    def _evaluation_fault(self, error: str, rule: CompiledRule, path: Path | None) -> FieldError:
        if error.startswith("no such overload"):
            return self._fault(
                path,
                f"'{error}': call arguments did not match a supported operator, function or macro "
                f"signature for rule: {rule.text}",
            )
        return self._fault(path, f"{error} evaluating rule: {rule.text}")

    def _message(
        self,
        rule: CompiledRule,
        variables: dict[str, Any],
        path: Path | None,
        evaluation: _Evaluation,
    ) -> str:
        given = rule.given.get("message", "").strip()
        plain = given or f"failed rule: {rule.given['rule'].strip()}"
        if rule.message_program is None:
            return plain
        made = self._evaluated_message(rule.message_program, rule, variables, path, evaluation)
        return plain if made is None else made

    def _evaluated_message(
        self,
        program: Program,
        rule: CompiledRule,
        variables: dict[str, Any],
        path: Path | None,
        evaluation: _Evaluation,
    ) -> str | None:
        outcome = program.evaluate(variables, cost_limit=CALL_COST_MAX)
        if outcome.error is not None and outcome.error.startswith(_TOO_COSTLY):
            text = go_quote(rule.given["messageExpression"])
            words = (
                "no further validation rules will be run due to call cost exceeds limit for "
                f"messageExpression: {text}"
            )
            evaluation.errors.append(self._fault(path, words))
            raise SpentError
        if not evaluation.spend(outcome.cost or 0):
            words = (
                "messageExpression evaluation failed due to running out of cost budget, no further "
                "validation rules will be run"
            )
            evaluation.errors.append(self._fault(path, words))
            raise SpentError
        if outcome.error is not None or not isinstance(outcome.value, str):
            return None
        text = outcome.value.strip()
        is_good = text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES_MAX
        return text if is_good else None


def _error_for(reason: str | None, path: Path, value: Any, detail: str) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid(path, value, detail)


def rule_validator(schema: Structural, *, is_resource: bool = True) -> RuleValidator | None:
    """Return the rules of a schema, or None without any."""
    if not has_rules(schema):
        return None
    declared = decl_type(schema, SELF_TYPE, is_resource=is_resource)
    if declared is None:
        return None
    found = RuleValidator(schema, declared, is_resource=is_resource)
    return found if found.has_rules else None


def _below(schema: Structural | None, declared: DeclType | None) -> RuleValidator | None:
    if schema is None or not has_rules(schema):
        return None
    if declared is None:  # The name of a property may not be an identifier.
        declared = decl_type(schema, SELF_TYPE, is_resource=schema.is_embedded)
    if declared is None:
        return None
    return RuleValidator(schema, declared, is_resource=schema.is_embedded)


def has_rules(schema: Structural) -> bool:
    """Return whether a schema or one below it has a rule."""
    if schema.tree.get(RULES):
        return True
    below = (schema.items, schema.additional_schema, *schema.properties.values())
    return any(has_rules(each) for each in below if each is not None)
