"""Kubernetes' authorization functions: declared, so that expressions check, and nothing else.

No expression about devices has an authorizer to ask, so none of these can ever be called.
"""

from __future__ import annotations

from typing import Any, Final

from mooring.cel.lang.costs import (
    TRAVERSAL_FACTOR,
    Argument,
    CallEstimate,
    Range,
    add,
    exactly,
    scale,
)
from mooring.cel.lang.environment import Function, Library, Overload
from mooring.cel.lang.equality import size_of
from mooring.cel.lang.types import BOOL, STRING, Type, struct

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


def library() -> Library:
    """Return the library `kubernetes.authz`."""
    return Library(
        "kubernetes.authz",
        functions=(
            _member("path", "authorizer_path", AUTHORIZER, PATH_CHECK, arity=1),
            _member("group", "authorizer_group", AUTHORIZER, GROUP_CHECK, arity=1),
            _member("serviceAccount", "authorizer_serviceaccount", AUTHORIZER, AUTHORIZER, arity=2),
            _member("resource", "groupcheck_resource", GROUP_CHECK, RESOURCE_CHECK, arity=1),
            _member(
                "subresource", "resourcecheck_subresource", RESOURCE_CHECK, RESOURCE_CHECK, arity=1
            ),
            _member(
                "namespace", "resourcecheck_namespace", RESOURCE_CHECK, RESOURCE_CHECK, arity=1
            ),
            _member("name", "resourcecheck_name", RESOURCE_CHECK, RESOURCE_CHECK, arity=1),
            Function(
                "check",
                (
                    _check("pathcheck_check", PATH_CHECK),
                    _check("resourcecheck_check", RESOURCE_CHECK),
                ),
            ),
            _member("errored", "decision_errored", DECISION, BOOL),
            _member("error", "decision_error", DECISION, STRING),
            _member("allowed", "decision_allowed", DECISION, BOOL),
            _member("reason", "decision_reason", DECISION, STRING),
        ),
    )


def selectors_library() -> Library:
    """Return the library `kubernetes.authzSelectors`."""
    return Library(
        "kubernetes.authzSelectors",
        functions=(
            _selector("fieldSelector", "authorizer_fieldselector"),
            _selector("labelSelector", "authorizer_labelselector"),
        ),
    )


def _member(name: str, id_: str, target: Type, result: Type, *, arity: int = 0) -> Function:
    params = (target, *[STRING] * arity)
    return Function(name, (Overload(id_, params, result, is_member=True),))


def _check(id_: str, target: Type) -> Overload:
    return Overload(
        id_,
        (target, STRING),
        DECISION,
        is_member=True,
        runtime_cost=lambda _args, _result: CHECK_COST,
        estimate=lambda _target, _args: CallEstimate(exactly(CHECK_COST)),
    )


def _selector(name: str, id_: str) -> Function:
    overload = Overload(
        id_,
        (RESOURCE_CHECK, STRING),
        RESOURCE_CHECK,
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
