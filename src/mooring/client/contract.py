"""What a client can do, whatever carries its requests: HTTP, or a call within the process.

Kinds are named by their struct in the hub version (`ResourceClaim` of resource.k8s.io/v1, `Pod`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from mooring.client.writes import Apply, Create, Delete, Patch, Update

T = TypeVar("T")


class Page(Struct, frozen=True):
    """Objects of one list, and the resource version they were read at."""

    values: tuple[Any, ...]
    revision: str
    rest: str = ""  # the token that continues the list; empty at its end


class Added(Struct, frozen=True):
    """An object is there, or is there in a newer version."""

    value: Any


class Removed(Struct, frozen=True):
    """An object is gone; this was its last version."""

    value: Any


class Bookmark(Struct, frozen=True):
    """Nothing happened up to this resource version that was not told."""

    revision: str


Event = Added | Removed | Bookmark


class Client(Protocol):
    """Reads and writes objects; every refusal is a `ClientError` with Kubernetes' reason."""

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, or None when it is not there."""

    async def list(
        self, struct: type[Any], namespace: str = "", *, limit: int = 0, rest: str = ""
    ) -> Page:
        """Return objects of a kind, of all namespaces unless one is given."""

    def watch(self, struct: type[Any], namespace: str = "", *, after: str) -> AsyncIterator[Event]:
        """Yield what happens after a resource version; raises `ExpiredError` when it is too old."""

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write and return the object as it is stored now."""
