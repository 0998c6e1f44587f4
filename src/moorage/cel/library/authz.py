"""Kubernetes' authorization functions: `authorizer.group('').resource('pods').check('get')`.

Expressions of policies have an authorizer to ask; those about devices have none, and so none of
their functions is ever called there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from moorage.api.names import dns1123_label, dns1123_subdomain
from moorage.cel.lang.costs import (
    TRAVERSAL_FACTOR,
    Argument,
    CallEstimate,
    Range,
    add,
    exactly,
    scale,
)
from moorage.cel.lang.environment import Function, Library, Overload
from moorage.cel.lang.equality import size_of
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.types import BOOL, STRING, Type, struct

AUTHORIZER: Final = struct("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = struct("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = struct("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = struct("kubernetes.authorization.ResourceCheck")
DECISION: Final = struct("kubernetes.authorization.Decision")
TYPES: Final = (AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION)

CHECK_COST: Final = 350_000
# The shortest requirement of a selector, `k,`, has two characters.
_REQUIREMENTS_PER_CHARACTER: Final = 0.5
_LIST_COST: Final = 10
_REQUIREMENT_COST: Final = 50  # a list and a struct


class Decision(NamedTuple):
    """The answer of an authorizer."""

    allowed: bool
    reason: str = ""
    error: str = ""


class AccessReviewer(Protocol):
    """Answers the questions of expressions about one user."""

    def review_path(self, path: str, verb: str) -> Decision:
        """Return whether the user may use a path."""

    def review_resource(self, check: ResourceCheck, verb: str) -> Decision:
        """Return whether the user may use a resource."""

    def of_service_account(self, namespace: str, name: str) -> AccessReviewer:
        """Return the same for a service account."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """The variable `authorizer`."""

    reviewer: AccessReviewer


@dataclass(frozen=True, slots=True)
class PathCheck:
    """`authorizer.path('/healthz')`."""

    reviewer: AccessReviewer
    path: str


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """`authorizer.group('apps')`."""

    reviewer: AccessReviewer
    group: str


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    """`authorizer.group('apps').resource('deployments')`, and what was added to it."""

    reviewer: AccessReviewer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise EvalError("path must not be empty")
    return PathCheck(authorizer.reviewer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if dns1123_subdomain(name):
        raise EvalError("Invalid service account name")
    if dns1123_label(namespace):
        raise EvalError("Invalid service account namespace")
    return Authorizer(authorizer.reviewer.of_service_account(namespace, name))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvalError("resource must not be empty")
    return ResourceCheck(check.reviewer, check.group, resource)


def library() -> Library:
    """Return the library `kubernetes.authz`."""

    def with_(field: str) -> Any:
        return lambda check, value: replace(check, **{field: value})

    resource = (RESOURCE_CHECK, RESOURCE_CHECK)
    return Library(
        "kubernetes.authz",
        functions=(
            _member("path", "authorizer_path", AUTHORIZER, PATH_CHECK, _path, arity=1),
            _member(
                "group",
                "authorizer_group",
                AUTHORIZER,
                GROUP_CHECK,
                lambda authorizer, group: GroupCheck(authorizer.reviewer, group),
                arity=1,
            ),
            _member(
                "serviceAccount",
                "authorizer_serviceaccount",
                AUTHORIZER,
                AUTHORIZER,
                _service_account,
                arity=2,
            ),
            _member(
                "resource", "groupcheck_resource", GROUP_CHECK, RESOURCE_CHECK, _resource, arity=1
            ),
            _member(
                "subresource",
                "resourcecheck_subresource",
                *resource,
                with_("subresource"),
                arity=1,
            ),
            _member("namespace", "resourcecheck_namespace", *resource, with_("namespace"), arity=1),
            _member("name", "resourcecheck_name", *resource, with_("name"), arity=1),
            Function(
                "check",
                (
                    _check("pathcheck_check", PATH_CHECK, _check_path),
                    _check("resourcecheck_check", RESOURCE_CHECK, _check_resource),
                ),
            ),
            _member("errored", "decision_errored", DECISION, BOOL, lambda given: bool(given.error)),
            _member("error", "decision_error", DECISION, STRING, lambda given: given.error),
            _member("allowed", "decision_allowed", DECISION, BOOL, lambda given: given.allowed),
            _member("reason", "decision_reason", DECISION, STRING, lambda given: given.reason),
        ),
        python_types={
            Authorizer: AUTHORIZER,
            PathCheck: PATH_CHECK,
            GroupCheck: GROUP_CHECK,
            ResourceCheck: RESOURCE_CHECK,
            Decision: DECISION,
        },
    )


def selectors_library() -> Library:
    """Return the library `kubernetes.authzSelectors`."""
    return Library(
        "kubernetes.authzSelectors",
        functions=(
            _selector("fieldSelector", "authorizer_fieldselector", "field_selector"),
            _selector("labelSelector", "authorizer_labelselector", "label_selector"),
        ),
    )


def _check_path(check: PathCheck, verb: str) -> Decision:
    return check.reviewer.review_path(check.path, verb)


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return check.reviewer.review_resource(check, verb)


def _member(
    name: str, id_: str, target: Type, result: Type, evaluate: Any, *, arity: int = 0
) -> Function:
    params = (target, *[STRING] * arity)
    return Function(name, (Overload(id_, params, result, evaluate, is_member=True),))


def _check(id_: str, target: Type, evaluate: Any) -> Overload:
    return Overload(
        id_,
        (target, STRING),
        DECISION,
        evaluate,
        is_member=True,
        runtime_cost=lambda _args, _result: CHECK_COST,
        estimate=lambda _target, _args: CallEstimate(exactly(CHECK_COST)),
    )


def _selector(name: str, id_: str, field: str) -> Function:
    overload = Overload(
        id_,
        (RESOURCE_CHECK, STRING),
        RESOURCE_CHECK,
        lambda check, text: replace(check, **{field: text}),
        is_member=True,
        runtime_cost=_selector_runtime_cost,
        estimate=_selector_estimate,
    )
    return Function(name, (overload,))


def _selector_runtime_cost(args: tuple[Any, ...], _result: Any) -> int:
    return _selector_cost(exactly(size_of(args[1]))).high


def _selector_estimate(_target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate | None:
    return CallEstimate(_selector_cost(args[0].size))


def _selector_cost(length: Range) -> Range:
    """Return the cost of a list, of reading the text and of each requirement it may have."""
    reading = scale(length, TRAVERSAL_FACTOR)
    requirements = scale(scale(length, _REQUIREMENTS_PER_CHARACTER), _REQUIREMENT_COST)
    return add(exactly(_LIST_COST), reading, requirements)
