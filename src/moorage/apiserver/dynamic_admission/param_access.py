"""Checks that authors of policies with parameters may read these parameters.

A policy can reveal its parameters to everybody whose requests it rejects. So its author must be
able to read all objects of the kind, and the author of a binding the objects that it refers to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.api.admissionregistration import (
    GROUP,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParamKind,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from moorage.api.field_path import Path, root
from moorage.apiserver.auth.access import Allowed, ResourceAccess
from moorage.apiserver.auth.users import MASTERS, User
from moorage.apiserver.dynamic_admission.params import find_param_resource
from moorage.apiserver.http.status import StatusError, invalid
from moorage.validation.errors import forbidden

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext
    from moorage.apiserver.verbs.resource_request import ResourceRequest

_POLICIES = (ValidatingAdmissionPolicy, MutatingAdmissionPolicy)
_BINDINGS = (ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicyBinding)


async def check_param_access(
    server: ServerContext, request: ResourceRequest, new: Any, old: Any
) -> None:
    """Raise 422 unless the author of a policy or a binding may read its parameters."""
    if server.authorizer is None or MASTERS in request.user.groups or request.target.subresource:
        return
    if isinstance(new, _POLICIES):
        kind = new.spec.param_kind
        if kind is not None and (old is None or old.spec.param_kind != kind):
            _check_kind(server, request, new, kind)
    elif isinstance(new, _BINDINGS) and new.spec.param_ref is not None:
        spec = new.spec
        if old is None or (old.spec.param_ref, old.spec.policy_name) != (
            spec.param_ref,
            spec.policy_name,
        ):
            await _check_reference(server, request, new)


def _check_kind(server: ServerContext, request: ResourceRequest, new: Any, kind: ParamKind) -> None:
    user = request.user
    group, resource = _resource_of(server, kind)
    access = ResourceAccess(user, "get", group, resource, "", "*", "*")
    if not _is_allowed(server, access):
        raise _refused(
            request,
            new,
            root("spec").child("paramKind"),
            f'user {_shown(user)} must have "get" permission on all objects of the referenced '
            f"paramKind (kind={kind.kind}, apiVersion={kind.api_version})",
        )


async def _check_reference(server: ServerContext, request: ResourceRequest, new: Any) -> None:
    user, spec = request.user, new.spec
    is_validating = isinstance(new, ValidatingAdmissionPolicyBinding)
    plural = "validatingadmissionpolicies" if is_validating else "mutatingadmissionpolicies"
    policies = server.resources.of(GROUP, plural)
    policy = await server.registry.find(policies, "", spec.policy_name)
    kind = None if policy is None else policy.spec.param_kind
    group, resource = ("*", "*") if kind is None else _resource_of(server, kind)
    ref, verb = spec.param_ref, "get" if spec.param_ref.name else "list"
    access = ResourceAccess(user, verb, group, resource, "", ref.namespace, ref.name)
    if _is_allowed(server, access):
        return
    everything = f'user {_shown(user)} does not have "{verb}" permission for all groups, versions'
    why = f'user {_shown(user)} does not have "{verb}" permission on the object referenced by '
    why += "paramRef"
    if policy is None:
        why = f"unable to get policy {spec.policy_name} to determine minimum required permissions "
        why += f"and {everything} and resources"
    elif kind is not None and resource == "*":
        shown = f"&ParamKind{{APIVersion:{kind.api_version},Kind:{kind.kind},}}"
        why = f"unable to resolve paramKind {shown} to determine minimum required permissions "
        why += f"and {everything} and resources"
    raise _refused(request, new, root("spec").child("paramRef"), why)


def _resource_of(server: ServerContext, kind: ParamKind) -> tuple[str, str]:
    resource = find_param_resource(server.resources, kind)
    group = kind.api_version.rpartition("/")[0]
    return group, "*" if resource is None else resource.plural


def _is_allowed(server: ServerContext, access: ResourceAccess) -> bool:
    assert server.authorizer is not None
    return isinstance(server.authorizer.authorizer.authorize(access), Allowed)


def _refused(request: ResourceRequest, new: Any, path: Path, why: str) -> StatusError:
    return invalid(request.resource.about, new.metadata.name, [forbidden(path, why)])


def _shown(user: User) -> str:
    """Return a user as Go prints the struct."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
