"""What policies and webhooks share: rules, selectors, match conditions, and their expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api import names
from moorage.api.admissionregistration import (
    EQUIVALENT,
    EXACT,
    FAIL,
    IF_NEEDED,
    IGNORE,
    NEVER,
    AnyRule,
    MatchCondition,
    MatchResources,
    NamedRuleWithOperations,
    RuleWithOperations,
)
from moorage.api.field_path import Path, root
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.cel.admission import AdmissionCompiler, CompiledExpression, Declared, Returns
from moorage.cel.device import Scope
from moorage.validation.device_fields import UNPAID_PER_BYTE
from moorage.validation.errors import (
    EXPRESSIONS_BYTES_MAX,
    ErrorList,
    count_compiled,
    duplicate,
    forbidden,
    internal,
    invalid,
    may_compile,
    not_supported,
    required,
    too_many,
)
from moorage.validation.field_rules import each, each_invalid, label_name
from moorage.validation.selectors import validate_label_selector

STATIC_SUFFIX = ".static.k8s.io"
MATCH_CONDITIONS_MAX = 64
FAILURE_POLICIES = (FAIL, IGNORE)
MATCH_POLICIES = (EQUIVALENT, EXACT)
REINVOCATION_POLICIES = (IF_NEEDED, NEVER)
MUTATED_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
# Reviews, which are never stored: neither policies nor webhooks see them.
EXCLUDED_RESOURCES = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)

EVERYTHING = LabelSelector()

R = TypeVar("R", RuleWithOperations, NamedRuleWithOperations)


# --- defaults -------------------------------------------------------------------------------------


def default_rule(rule: R) -> R:
    """Return a rule with its scope."""
    return rule if rule.scope is not None else replace(rule, scope="*")


def default_match_resources(match: MatchResources | None) -> MatchResources | None:
    """Return the requests that a policy is about, with defaults."""
    if match is None:
        return None
    return replace(
        match,
        match_policy=EQUIVALENT if match.match_policy is None else match.match_policy,
        namespace_selector=_selector(match.namespace_selector),
        object_selector=_selector(match.object_selector),
        resource_rules=tuple(map(default_rule, match.resource_rules)),
        exclude_resource_rules=tuple(map(default_rule, match.exclude_resource_rules)),
    )


def _selector(selector: LabelSelector | None) -> LabelSelector:
    return EVERYTHING if selector is None else selector


# --- rules ----------------------------------------------------------------------------------------


def validate_rule(rule: AnyRule, path: Path) -> ErrorList:
    """Validate operations and resources."""
    found = _words(rule.operations, path.child("operations"), "operations")
    place = path.child("operations")
    for position, operation in enumerate(rule.operations):
        if operation not in OPERATIONS:
            found.append(not_supported(place.index(position), operation, OPERATIONS))
    found += _words(rule.api_groups, path.child("apiGroups"), "API groups")
    place = path.child("apiVersions")
    found += _words(rule.api_versions, place, "API versions")
    found += [required(place.index(i)) for i, each in enumerate(rule.api_versions) if not each]
    found += _validate_resources(rule.resources, path.child("resources"))
    if rule.scope is not None and rule.scope not in SCOPES:
        found.append(not_supported(path.child("scope"), rule.scope, SCOPES))
    return found


def _words(given: tuple[str, ...], path: Path, nouns: str) -> ErrorList:
    """Validate that there are words, and that the one for all of them is alone."""
    if not given:
        return [required(path)]
    if len(given) > 1 and "*" in given:
        return [invalid(path, given, f"if '*' is present, must not specify other {nouns}")]
    return []


def _validate_resources(resources: tuple[str, ...], path: Path) -> ErrorList:
    found: ErrorList = [] if resources else [required(path)]
    with_all_parts: set[str] = set()  # x/*
    part_of_all: set[str] = set()  # */x
    is_last_plain = False  # as in Kubernetes, the last one without a part decides
    for position, text in enumerate(resources):
        place = path.index(position)
        if not text:
            found.append(required(place))
            continue
        resource, slash, part = text.partition("/")
        if not slash:
            is_last_plain = text != "*"
            continue
        if resource in with_all_parts:
            detail = f"if '{resource}/*' is present, must not specify {text}"
            found.append(invalid(place, text, detail))
        if part in part_of_all:
            detail = f"if '*/{part}' is present, must not specify {text}"
            found.append(invalid(place, text, detail))
        if part == "*":
            with_all_parts.add(resource)
        if resource == "*":
            part_of_all.add(part)
    if len(resources) > 1 and "*/*" in resources:
        detail = "if '*/*' is present, must not specify other resources"
        found.append(invalid(path, resources, detail))
    if "*" in resources and is_last_plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, resources, detail))
    return found


def validate_named_rule(rule: NamedRuleWithOperations, path: Path) -> ErrorList:
    """Validate a rule that may name objects."""
    found: ErrorList = []
    place, seen = path.child("resourceNames"), set[str]()
    for position, name in enumerate(rule.resource_names):
        found += each_invalid(place.index(position), name, names.path_segment(name))
        if name in seen:
            found.append(duplicate(place.index(position), name))
        seen.add(name)
    return found + validate_rule(rule, path)


def validate_match_resources(match: MatchResources | None, path: Path) -> ErrorList:
    """Validate which requests a policy or a binding is about."""
    if match is None:
        return []
    found = required_word(match.match_policy, MATCH_POLICIES, path.child("matchPolicy"))
    for name, selector in (
        ("namespaceSelector", match.namespace_selector),
        ("objectSelector", match.object_selector),
    ):
        if selector is None:
            found.append(required(path.child(name)))
        else:
            found += validate_label_selector(selector, path.child(name))
    found += each(match.resource_rules, validate_named_rule, path.child("resourceRules"))
    excluded = path.child("excludeResourceRules")
    return found + each(match.exclude_resource_rules, validate_named_rule, excluded)


def required_word(value: str | None, supported: tuple[str, ...], path: Path) -> ErrorList:
    """Validate a word that must be one of some."""
    if value is None:
        return [required(path)]
    return optional_word(value, supported, path)


def optional_word(value: str | None, supported: tuple[str, ...], path: Path) -> ErrorList:
    """Validate a word that is one of some, if it is there."""
    if value is None or value in supported:
        return []
    return [not_supported(path, value, supported)]


def validate_mutated(match: MatchResources, path: Path) -> ErrorList:
    """Validate that there is an object to change."""
    return [
        not_supported(path.child("resourceRules", "operations"), operation, MUTATED_OPERATIONS)
        for rule in match.resource_rules
        for operation in rule.operations
        if operation not in MUTATED_OPERATIONS
    ]


# --- expressions ----------------------------------------------------------------------------------


Compile = Callable[[], CompiledExpression]


@lru_cache(maxsize=1024)
def compile_alone(
    expression: str, returns: Returns, declared: Declared, scope: Scope
) -> CompiledExpression:
    """Return a compiled expression that cannot use variables; the same text is compiled once."""
    return AdmissionCompiler(composes=False).compile(expression, returns, declared, scope)


def validate_expression(
    expression: str, path: Path, compiled: Compile, *, shown: str | None = None
) -> ErrorList:
    """Validate that an expression compiles; `shown` is the value in its error."""
    if not may_compile(expression):
        detail = f"all expressions together may not have more than {EXPRESSIONS_BYTES_MAX} bytes"
        return [forbidden(path, detail)]
    found = compiled()
    count_compiled(expression, found.unpaid // UNPAID_PER_BYTE)
    if not found.error:
        return []
    if found.is_internal:
        return [internal(path, found.error)]
    return [invalid(path, expression if shown is None else shown, found.error)]


def scope_of(expression: str, preexisting: Iterable[str]) -> Scope:
    """Return whether an expression is new, or was stored before."""
    return Scope.STORED if expression in preexisting else Scope.NEW


def validate_match_conditions(
    conditions: tuple[MatchCondition, ...],
    path: Path,
    *,
    has_params: bool,
    preexisting: frozenset[str],
) -> ErrorList:
    """Validate match conditions, which cannot use variables."""
    found: ErrorList = []
    if len(conditions) > MATCH_CONDITIONS_MAX:
        found.append(too_many(path, len(conditions), MATCH_CONDITIONS_MAX))
    declared, seen = Declared(params=has_params), set[str]()
    for position, condition in enumerate(conditions):
        place, name = path.index(position), condition.name
        found += _validate_condition(condition, place, declared, preexisting)
        if name and name in seen:
            found.append(duplicate(place.child("name"), name))
        seen.add(name)
    return found


def _validate_condition(
    condition: MatchCondition, path: Path, declared: Declared, preexisting: frozenset[str]
) -> ErrorList:
    expression, place = condition.expression.strip(), path.child("expression")
    found: ErrorList = []
    if not expression:
        found.append(required(place))
    else:
        scope = scope_of(expression, preexisting)
        found += validate_expression(
            expression, place, lambda: compile_alone(expression, Returns.BOOL, declared, scope)
        )
    if not condition.name:
        return [*found, required(path.child("name"))]
    return found + label_name(condition.name, path.child("name"))


# --- names ----------------------------------------------------------------------------------------


def validate_static_suffix(metadata: ObjectMeta) -> ErrorList:
    """Validate that a new object has no name that is kept for files of the server."""
    if not metadata.name.endswith(STATIC_SUFFIX):
        return []
    return [invalid(root("metadata").child("name"), metadata.name, _RESERVED)]


def static_suffix_warnings(metadata: ObjectMeta) -> list[str]:
    """Return the warning about such a name."""
    if not metadata.name.endswith(STATIC_SUFFIX):
        return []
    return [f"metadata.name: {_RESERVED}"]


_RESERVED = (
    f'names ending with "{STATIC_SUFFIX}" are reserved for static manifest-based configurations '
    "and cannot be managed via the API"
)


def excluded_resource_warnings(webhooks: Iterable[Any]) -> Iterator[str]:
    """Yield a warning for each rule of a webhook that names a resource that webhooks never see."""
    for number, webhook in enumerate(webhooks):
        for position, rule in enumerate(webhook.rules):
            if "*" in rule.api_groups or "*" in rule.resources:
                continue
            pairs = ((group, name) for group in rule.api_groups for name in rule.resources)
            for group, name in dict.fromkeys(pair for pair in pairs if pair in EXCLUDED_RESOURCES):
                place = f"webhooks[{number}].rules[{position}]"
                yield (
                    f"{place}: {name}.{group} is excluded from admission webhooks; this rule will "
                    "have no effect"
                )
