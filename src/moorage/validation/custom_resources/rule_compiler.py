"""Compiles the rules of one node of a schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from moorage.api.apiextensions import CustomResourceDefinitionSpec, CustomResourceDefinitionVersion
from moorage.api.field_path import Path
from moorage.cel.lang import types as t
from moorage.cel.lang.cost_estimator import estimate_cost
from moorage.cel.lang.environment import Environment
from moorage.cel.lang.errors import CompileError, InstantiationError
from moorage.cel.lang.program import Program, compile_expression
from moorage.cel.library import base_environment
from moorage.validation.custom_resources.definition_rules import schema_of
from moorage.validation.custom_resources.field_paths import FieldPathError, find_field
from moorage.validation.custom_resources.rule_types import (
    REQUEST_BYTES_MAX,
    DeclaredSizes,
    DeclType,
)
from moorage.validation.custom_resources.structural import Structural

SELF, OLD_SELF = "self", "oldSelf"
SELF_TYPE: Final = "selfType"
RULES: Final = "x-kubernetes-validations"


class CompiledRule(NamedTuple):
    """One rule: its programs, or why it does not compile."""

    given: dict[str, Any]
    program: Program | None = None
    error: str = ""
    cost_max: int = 0
    uses_old_self: bool = False
    message_program: Program | None = None
    message_error: str = ""
    message_cost_max: int = 0
    field_path: Path | None = None

    @property
    def allows_no_old_self(self) -> bool:
        """Whether `oldSelf` is optional."""
        return bool(self.given.get("optionalOldSelf", False))

    @property
    def text(self) -> str:
        """The text of the rule in errors: its message, or else the expression."""
        text: str = self.given.get("message") or self.given["rule"]
        return text.strip()


class KnownExpressions(NamedTuple):
    """The versions of a definition whose schemas an update leaves unchanged."""

    unchanged: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, old: CustomResourceDefinitionSpec, new: CustomResourceDefinitionSpec
    ) -> KnownExpressions:
        """Return the versions that two definitions have in common."""
        before = {version.name: schema_of(version) for version in old.versions}
        return cls(
            frozenset(
                version.name
                for version in new.versions
                if version.name in before and before[version.name] == schema_of(version)
            )
        )

    def is_unchanged(self, versions: Iterable[CustomResourceDefinitionVersion]) -> bool:
        """Return whether the schemas of all these versions are unchanged."""
        return all(version.name in self.unchanged for version in versions)


def compile_rules(schema: Structural, declared: DeclType) -> list[CompiledRule]:
    """Return the rules of a node, compiled."""
    environments = _environments(declared)
    return [_compiled(rule, schema, declared, environments) for rule in schema.tree.get(RULES, ())]


def cardinality_max(encoded_min: int) -> int:
    """Return how many values of a size fit into a request."""
    return REQUEST_BYTES_MAX // (encoded_min + 1)


def _environments(declared: DeclType) -> dict[bool, Environment]:
    """Return the environment of rules, by whether `oldSelf` is optional."""
    base, structs = base_environment(), dict(declared.structs())
    return {
        is_optional: base.extended(
            variables={
                SELF: declared.type,
                OLD_SELF: t.optional_of(declared.type) if is_optional else declared.type,
            },
            structs=structs,
        )
        for is_optional in (False, True)
    }


def _compiled(
    rule: dict[str, Any],
    schema: Structural,
    declared: DeclType,
    environments: dict[bool, Environment],
) -> CompiledRule:
    if not rule["rule"].strip():
        return CompiledRule(rule)
    environment = environments[bool(rule.get("optionalOldSelf", False))]
    program = _program(rule["rule"], environment)
    if isinstance(program, str):
        return CompiledRule(rule, error=program)
    if program.output_type != t.BOOL:
        return CompiledRule(rule, error="cel expression must evaluate to a bool")
    references = program.checked.references.values()
    found = CompiledRule(
        rule,
        program,
        cost_max=_cost(program, environment, declared),
        uses_old_self=any(each.name == OLD_SELF for each in references),
        field_path=_field_path(rule, schema),
    )
    return _with_message(found, environment, declared)


def _with_message(rule: CompiledRule, environment: Environment, declared: DeclType) -> CompiledRule:
    text = rule.given.get("messageExpression", "")
    if not text:
        return rule
    program = _program(text, environment)
    if isinstance(program, str):
        return rule._replace(message_error=f"messageExpression {program}")
    if program.output_type != t.STRING:
        return rule._replace(message_error="messageExpression must evaluate to a string")
    cost_max = _cost(program, environment, declared)
    return rule._replace(message_program=program, message_cost_max=cost_max)


def _program(text: str, environment: Environment) -> Program | str:
    try:
        return compile_expression(text, environment)
    except CompileError as error:
        return f"compilation failed: {error}"
    except RecursionError:
        return "compilation failed: nested too deeply"
    except InstantiationError as error:
        return f"program instantiation failed: {error}"


def _cost(program: Program, environment: Environment, declared: DeclType) -> int:
    sizes = DeclaredSizes(declared)
    return estimate_cost(program.checked, environment, size_hints=sizes).high


def _field_path(rule: dict[str, Any], schema: Structural) -> Path | None:
    if not rule.get("fieldPath"):
        return None
    try:
        return find_field(rule["fieldPath"], schema)[0]
    except FieldPathError:
        return None
