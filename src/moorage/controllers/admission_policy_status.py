"""The status of validating admission policies: warnings about the types in their expressions.

Each generation of a policy is checked once, as in Kubernetes: a definition that is created later
has no effect until the policy changes. The controller looks up the kinds that a policy matches by
name: built-in ones in the API schema, others in their definitions. It checks each expression
against each kind; rules with wildcards and subresources have no known types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.admissionregistration import (
    ExpressionWarning,
    NamedRuleWithOperations,
    TypeChecking,
    ValidatingAdmissionPolicy,
)
from moorage.api.apiextensions import CustomResourceDefinition
from moorage.api.catalogue import SERVED
from moorage.api.schema import META, Field, api_type, find_kind
from moorage.api.timestamp import Timestamp
from moorage.cel.admission import AdmissionCompiler, Declared, ObjectTypes
from moorage.cel.lang import types as t
from moorage.cel.lang.types import Type
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Update
from moorage.controllers.controller import Answers, Controller, Step
from moorage.validation.custom_resources.definition_rules import schema_of
from moorage.validation.custom_resources.rule_types import decl_type, escaped
from moorage.validation.custom_resources.structural import structural

KINDS_MAX: Final = 10  # of a policy; others are not checked
Structs = Mapping[str, Mapping[str, Type]]

_METADATA: Final = f"{META}.ObjectMeta"
_SCALARS: Final[Mapping[str, Type]] = {
    "string": t.STRING,
    "bool": t.BOOL,
    "int32": t.INT,
    "int64": t.INT,
    "bytes": t.BYTES,
    "time": t.TIMESTAMP,
    "microtime": t.TIMESTAMP,
    "int-or-string": t.DYN,
    "strings": t.list_of(t.STRING),
    # Kubernetes' own schemas give these no type, so that it warns of limits and requests.
    "quantity": t.DYN,
    "json": t.DYN,
    "json-schema": t.DYN,
}


class AdmissionPolicyStatusController(Controller):
    """Warns of expressions that do not fit the types of the objects that their policy matches."""

    name: ClassVar[str] = "validatingadmissionpolicy-status-controller"
    kinds = (ValidatingAdmissionPolicy, CustomResourceDefinition)
    optional = kinds

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the update of the status of a policy whose generation has not been checked."""
        policy = objects.get(ValidatingAdmissionPolicy, *key)
        if policy is None or policy.metadata.generation <= policy.status.observed_generation:
            return
        warnings = type_warnings(policy, tuple(objects.list(CustomResourceDefinition)))
        status = replace(
            policy.status,
            observed_generation=policy.metadata.generation,
            type_checking=TypeChecking(expression_warnings=warnings),
        )
        yield Update(replace(policy, status=status), subresource="status")


# --- warnings -------------------------------------------------------------------------------------


def type_warnings(
    policy: ValidatingAdmissionPolicy, definitions: Collection[CustomResourceDefinition]
) -> tuple[ExpressionWarning, ...]:
    """Return type warnings about the validations of a policy, by expression."""
    spec = policy.spec
    declared = Declared(params=spec.param_kind is not None)
    params, structs = _params(policy, definitions)
    compilers: list[tuple[CheckedKind, AdmissionCompiler]] = []
    for kind in _checked_kinds(policy, definitions):
        types = ObjectTypes(kind.type, params, {**kind.structs, **structs})
        compiler = AdmissionCompiler(types=types)
        for variable in spec.variables:
            compiler.add_variable(variable.name, variable.expression, declared)
        compilers.append((kind, compiler))
    found = []
    for place, expression in _expressions(policy):
        errors = [(kind, compiler.type_error(expression, declared)) for kind, compiler in compilers]
        words = [f"{kind}: {error}\n" for kind, error in errors if error]
        if words:
            found.append(ExpressionWarning(field_ref=place, warning="\n".join(words)))
    return tuple(found)


def _expressions(policy: ValidatingAdmissionPolicy) -> Iterator[tuple[str, str]]:
    for position, validation in enumerate(policy.spec.validations):
        place = f"spec.validations[{position}]"
        yield f"{place}.expression", validation.expression
        if validation.message_expression:
            yield f"{place}.messageExpression", validation.message_expression


def _params(
    policy: ValidatingAdmissionPolicy, definitions: Iterable[CustomResourceDefinition]
) -> tuple[Type, Structs]:
    """Return the type of the parameters of a policy."""
    kind = policy.spec.param_kind
    if kind is None:
        return t.DYN, {}
    if (name := find_kind(kind.api_version, kind.kind)) is not None:
        return t.struct(name), _structs_below(name)
    group, _, version = kind.api_version.partition("/")
    for definition in definitions:
        if (definition.spec.group, definition.spec.names.kind) == (group, kind.kind):
            custom = _custom(definition, version)
            if custom is not None:
                return custom.type, custom.structs
    return t.DYN, {}


# --- kinds that are matched -----------------------------------------------------------------------


class MatchedResource(NamedTuple):
    """A resource that a rule names."""

    group: str
    version: str
    plural: str

    @property
    def definition_name(self) -> str:
        """The name of the resource's definition, if it has one."""
        return f"{self.plural}.{self.group}"


class CheckedKind(NamedTuple):
    """A kind that a policy matches, with the types of its objects."""

    group: str
    version: str
    name: str
    type: Type
    structs: Structs

    def __str__(self) -> str:
        """Return the kind as Go prints it."""
        return f"{self.group}/{self.version}, Kind={self.name}"


def _matched_resources(policy: ValidatingAdmissionPolicy) -> list[MatchedResource]:
    """Return the resources that a policy matches by name, each once, in Kubernetes' order."""
    constraints = policy.spec.match_constraints
    found: dict[MatchedResource, None] = {}
    for rule in () if constraints is None else constraints.resource_rules:
        found |= dict.fromkeys(_named(rule))
    return list(found)


def _named(rule: NamedRuleWithOperations) -> Iterator[MatchedResource]:
    if any("*" in each for each in (*rule.api_groups, *rule.api_versions)):
        return
    plurals = sorted(each for each in rule.resources if "*" not in each and "/" not in each)
    for group in sorted(rule.api_groups):
        for version in sorted(rule.api_versions):
            for plural in plurals:
                yield MatchedResource(group, version, plural)


def _checked_kinds(
    policy: ValidatingAdmissionPolicy, definitions: Iterable[CustomResourceDefinition]
) -> list[CheckedKind]:
    """Return the kinds that a policy matches, sorted."""
    by_name = {each.metadata.name: each for each in definitions}
    found: set[tuple[str, str, str]] = set()
    kinds: list[CheckedKind] = []
    for resource in _matched_resources(policy):
        definition = by_name.get(resource.definition_name)
        custom = None if definition is None else _custom(definition, resource.version)
        for kind in _built_in(resource) if custom is None else (custom,):
            if kind[:3] not in found and len(kinds) < KINDS_MAX:
                found.add(kind[:3])
                kinds.append(kind)
    return sorted(kinds, key=lambda kind: kind[:3])


@lru_cache(maxsize=64)
def _built_in(resource: MatchedResource) -> tuple[CheckedKind, ...]:
    """Return the kinds of a resource; without a group, it may be in any, as in Kubernetes."""
    found = []
    for kind in SERVED:
        is_same = (kind.version, kind.plural) == (resource.version, resource.plural)
        if not is_same or resource.group not in ("", kind.group):
            continue
        name = find_kind(kind.api_version, kind.name)
        if name is not None:
            structs = dict(_structs_below(name))
            found.append(CheckedKind(kind.group, kind.version, kind.name, t.struct(name), structs))
    return tuple(found)


def _custom(definition: CustomResourceDefinition, version: str) -> CheckedKind | None:
    """Return the kind of a definition in a version, if it is served and has a schema."""
    spec = definition.spec
    kind = spec.names.kind
    for each in spec.versions:
        if each.name != version or not each.served:
            continue
        declared = decl_type(structural(schema_of(each) or {}), kind, is_resource=True)
        structs = dict(() if declared is None else declared.structs())
        if declared is not None and kind in structs:
            structs[kind]["metadata"] = t.struct(_METADATA)
            structs |= _structs_below(_METADATA)
            return CheckedKind(spec.group, version, kind, declared.type, structs)
    return None


# --- types of built-in kinds ----------------------------------------------------------------------


def _structs_below(name: str) -> dict[str, dict[str, Type]]:
    """Return a struct and all structs within it."""
    found: dict[str, dict[str, Type]] = {}
    waiting = [name]
    while waiting:
        if (here := waiting.pop()) in found:
            continue
        fields = found[here] = {}
        declared = api_type(here)
        if declared.is_kind:
            fields |= {"apiVersion": t.STRING, "kind": t.STRING}
        for field in declared.json_fields():
            key = escaped(field.name) or field.name
            fields[key] = fields[field.name] = _field_type(field)
            if field.is_struct:
                waiting.append(field.type)
    return found


def _field_type(field: Field) -> Type:
    kind = t.struct(field.type) if field.is_struct else _SCALARS[field.type]
    if field.is_map:
        return t.map_of(t.STRING, kind)
    return t.list_of(kind) if field.is_list else kind
