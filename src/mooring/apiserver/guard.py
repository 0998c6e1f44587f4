"""The door to all that decides what users may do.

A server follows the resources in `FOLLOWED`, handing each object to `put` and `remove`. Then

1. `authorizer` says whether a request may go on,
2. `admit` says whether what it writes may be written, once that is known,
3. `claim_status` answers for the parts of a claim's status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mooring.api.core import Pod
from mooring.api.gates import Gates
from mooring.api.rbac import GROUP, ClusterRole, ClusterRoleBinding, Role, RoleBinding
from mooring.api.resource.v1 import GROUP as RESOURCE_GROUP
from mooring.api.resource.v1 import ResourceSlice
from mooring.apiserver.authorization.access import Authorizer, Chain, Masters
from mooring.apiserver.authorization.bootstrap.objects import node_rules
from mooring.apiserver.authorization.claimstatus import ClaimStatusAuthorizer
from mooring.apiserver.authorization.escalation import Writing, refuse_writing
from mooring.apiserver.authorization.noderestriction import Change, Operation, refuse_change
from mooring.apiserver.authorization.nodes import NodeAuthorizer, NodeTies
from mooring.apiserver.authorization.rbac import Policy
from mooring.apiserver.calls import User
from mooring.apiserver.status import About, StatusError, forbidden

FOLLOWED: Final = (
    (GROUP, "clusterroles"),
    (GROUP, "clusterrolebindings"),
    (GROUP, "roles"),
    (GROUP, "rolebindings"),
    ("", "pods"),
    (RESOURCE_GROUP, "resourceslices"),
)

_RBAC = (Role, ClusterRole, RoleBinding, ClusterRoleBinding)


class Guard:
    """Roles, bindings and what nodes need, as they are stored; and what follows."""

    def __init__(self, gates: Gates, objects: Iterable[Any] = ()) -> None:
        self.policy = Policy()
        self._ties = NodeTies()
        nodes = NodeAuthorizer(self._ties, node_rules(gates))
        self.authorizer: Authorizer = Chain(Masters(), nodes, self.policy)
        for value in objects:
            self.put(value)

    def put(self, value: Any) -> None:
        """Take an object, new or changed."""
        match value:
            case Role() | ClusterRole() | RoleBinding() | ClusterRoleBinding():
                self.policy.put(value)
            case Pod():
                self._ties.put_pod(value)
            case ResourceSlice():
                self._ties.put_slice(value)

    def remove(self, value: Any) -> None:
        """Forget an object."""
        match value:
            case Role() | ClusterRole() | RoleBinding() | ClusterRoleBinding():
                self.policy.remove(value)
            case Pod():
                self._ties.remove_pod(value.metadata.namespace, value.metadata.name)
            case ResourceSlice():
                self._ties.remove_slice(value.metadata.name)

    def admit(self, user: User, change: Change) -> None:
        """Raise why the user may not write this, if so."""
        reason = refuse_change(user, change) or self._refuse_escalation(user, change)
        if reason is not None:
            raise _refusal(change, reason)

    def claim_status(self, user: User, *, verb: str, namespace: str) -> ClaimStatusAuthorizer:
        """Return who answers for the status of a claim that the user writes."""
        return ClaimStatusAuthorizer(self.authorizer, user, verb=verb, namespace=namespace)

    def _refuse_escalation(self, user: User, change: Change) -> str | None:
        if change.operation is Operation.DELETE or not isinstance(change.new, _RBAC):
            return None
        writing = Writing(user, change.target, change.new, change.old)
        return refuse_writing(writing, policy=self.policy, authorizer=self.authorizer)


def _refusal(change: Change, reason: str) -> StatusError:
    target = change.target
    name = target.name
    if not name and change.new is not None:
        metadata = change.new.metadata
        name = metadata.name or metadata.generate_name
    return forbidden(About(target.resource, "", target.group), name, reason)
