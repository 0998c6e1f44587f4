"""What the verbs need besides the request: the store, the clock, new names, the gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mooring.api.gates import Gates
from mooring.api.resource.v1 import ADMIN_NAMESPACE_LABEL
from mooring.api.timestamp import Timestamp
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resources
from mooring.validation.context import Context

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

    def context(self, namespace: Any | None, *, verb: str) -> Context:
        """Return what admission must know for a request that is about something in a namespace."""
        labels = {} if namespace is None else namespace.metadata.labels
        return Context(
            gates=self.gates,
            now=self.now(),
            extensions=self.extensions,
            namespace_is_admin=labels.get(ADMIN_NAMESPACE_LABEL) == "true",
            verb=verb,
        )

    async def namespace(self, name: str) -> Any | None:
        """Return a namespace, if it is there."""
        if not name:
            return None
        return await self.registry.find(self.resources.of(*NAMESPACES), "", name)
