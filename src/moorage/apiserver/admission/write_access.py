"""Whether a user may write this content: NodeRestriction, certificates, and RBAC escalation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.api.core import Pod
from moorage.apiserver.admission.certificates import refuse_certificate_write
from moorage.apiserver.admission.node_restriction import (
    AdmissionAttributes,
    Operation,
    refuse_node_write,
)
from moorage.apiserver.auth.rbac import RBAC_KINDS, RoleWrite, refuse_escalation
from moorage.apiserver.auth.users import User, node_of
from moorage.apiserver.http.status import About, forbidden
from moorage.apiserver.verbs.resource_request import ResourceRequest

if TYPE_CHECKING:
    from moorage.apiserver.auth.authorizer import ClusterAuthorizer
    from moorage.apiserver.server_context import ServerContext


async def admit_write(
    server: ServerContext,
    request: ResourceRequest,
    operation: Operation,
    *,
    new: Any = None,
    old: Any = None,
    pod: Pod | None = None,
) -> None:
    """Raise if NodeRestriction or RBAC escalation forbids the user to write this content."""
    if server.authorizer is None:
        return
    node = None
    if isinstance(new, Pod) and (name := node_of(request.user)):
        node = await server.registry.find(server.resources.of("", "nodes"), "", name)
    change = AdmissionAttributes(operation, request.target, new, old, pod, node)
    check_write(server.authorizer, request.user, change)


def check_write(cluster: ClusterAuthorizer, user: User, change: AdmissionAttributes) -> None:
    """Raise 403 if NodeRestriction or the escalation check refuses a write."""
    target, new = change.target, change.new
    reason = refuse_node_write(user, change)
    reason = reason or refuse_certificate_write(user, change, cluster.authorizer)
    is_write = change.operation is not Operation.DELETE
    if reason is None and is_write and isinstance(new, RBAC_KINDS):
        write = RoleWrite(user, target, new, change.old)
        reason = refuse_escalation(write, policy=cluster.policy, authorizer=cluster.authorizer)
    if reason is not None:
        name = target.name
        if not name and new is not None:
            name = new.metadata.name or new.metadata.generate_name
        raise forbidden(About(target.resource, "", target.group), name, reason)
