"""What the verbs need besides the request: the store, the clock, new names, the gates."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct, field

from mooring.api.core import Pod
from mooring.api.gates import Gates
from mooring.api.resource.v1 import ADMIN_NAMESPACE_LABEL
from mooring.api.timestamp import Timestamp
from mooring.apiserver.admission.admission import NOTHING, Admission
from mooring.apiserver.authentication.tokenrequests import Signing
from mooring.apiserver.authentication.users import node_of
from mooring.apiserver.authorization.noderestriction import Change, Operation
from mooring.apiserver.calls import Call
from mooring.apiserver.guard import Guard
from mooring.apiserver.limits import WATCH_S
from mooring.apiserver.poddefaults import with_defaults
from mooring.apiserver.reaching.contract import NodeIdentity
from mooring.apiserver.registry import Registry
from mooring.apiserver.representing import Painted, new_painted
from mooring.apiserver.resources import Resources
from mooring.validation.context import AllowEverything, Context, StatusAuthorizer

NAMESPACES = ("", "namespaces")


class Service(Struct, frozen=True):
    """A server without its network."""

    registry: Registry
    resources: Resources
    gates: Gates
    now: Callable[[], Timestamp]
    new_uid: Callable[[], str]
    new_suffix: Callable[[], str]
    extensions: bool = True
    guard: Guard | None = None  # None: who may ask may write anything
    signing: Signing | None = None  # None: no tokens are given
    admission: Admission | None = None  # None: no quotas, and only the account and class by default
    nodes: NodeIdentity | None = None  # None: no node is reached
    watch_s: Callable[[], int] = lambda: WATCH_S  # for watches that name no time
    painted: Painted = field(default_factory=new_painted)  # what watches share

    def context(self, call: Call, namespace: Any | None, *, verb: str) -> Context:
        """Return what admission must know for a request that is about something in a namespace."""
        labels = {} if namespace is None else namespace.metadata.labels
        authorizer: StatusAuthorizer = AllowEverything()
        if self.guard is not None:
            where = call.target.namespace
            authorizer = self.guard.claim_status(call.user, verb=verb, namespace=where)
        return Context(
            gates=self.gates,
            now=self.now(),
            extensions=self.extensions,
            namespace_is_admin=labels.get(ADMIN_NAMESPACE_LABEL) == "true",
            authorizer=authorizer,
            verb=verb,
        )

    async def admit(
        self,
        call: Call,
        operation: Operation,
        *,
        new: Any = None,
        old: Any = None,
        pod: Pod | None = None,
    ) -> None:
        """Raise why the user may not write this, now that the content is known."""
        if self.guard is None:
            return
        node = None
        if isinstance(new, Pod) and (name := node_of(call.user)):
            node = await self.registry.find(self.resources.of("", "nodes"), "", name)
        self.guard.admit(call.user, Change(operation, call.target, new, old, pod, node))

    async def completed(self, call: Call, new: Any, *, is_valid: bool = True) -> Any:
        """Return a new object with what it is given here, or raise why it may not be."""
        if self.admission is not None:
            return await self.admission.completed(call, new, is_valid=is_valid)
        return with_defaults(new, self.new_suffix()) if isinstance(new, Pod) else new

    def charged(self, call: Call, new: Any) -> AbstractAsyncContextManager[None]:
        """Return what to store a new object within: quotas have room for it, or it raises."""
        return NOTHING if self.admission is None else self.admission.charged(call, new)

    async def admit_more(self, call: Call, new: Any, old: Any) -> None:
        """Raise why an object may not be changed so, though the user may change it."""
        if self.admission is not None:
            await self.admission.admit_change(call, new, old)

    async def namespace(self, name: str) -> Any | None:
        """Return a namespace, if it is there."""
        if not name:
            return None
        return await self.registry.find(self.resources.of(*NAMESPACES), "", name)
