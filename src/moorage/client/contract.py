"""The Client protocol, the Transport that carries its requests, and `list_all`, which reads pages.

Kinds are named by their struct in the hub version (`ResourceClaim` of resource.k8s.io/v1, `Pod`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from moorage.api.meta import identity_text
from moorage.client.errors import ExpiredError, UnreadableError
from moorage.client.writes import Apply, Create, Delete, Patch, Update

T = TypeVar("T")

JSON = "application/json"
PAGE = 2000
RESTARTS_MAX = 2  # then the list is requested as a whole
PAGES_MAX = 100_000


class Unreadable(Struct, frozen=True):
    """An object that does not fit its kind; its metadata says which one it is."""

    struct: type[Any]
    namespace: str
    name: str
    uid: str
    revision: str
    cause: str
    is_gone: bool = False  # it was deleted
    text: bytes = b""  # the object as it was received

    def __str__(self) -> str:
        return identity_text(self.struct.__name__, self.namespace, self.name, self.uid)


class ObjectList(Struct, frozen=True):
    """Objects of a list or a page of one, and the resource version they were read at."""

    values: tuple[Any, ...]
    revision: str
    continue_token: str = ""  # the continue token; empty at the end of the list
    unreadable: tuple[Unreadable, ...] = ()  # objects that are missing among the values


class Added(Struct, frozen=True):
    """An object was added or modified."""

    value: Any


class Removed(Struct, frozen=True):
    """An object was deleted; this was its last version."""

    value: Any


class Bookmark(Struct, frozen=True):
    """The watch has delivered all events up to this resource version."""

    revision: str


Event = Added | Removed | Bookmark | Unreadable


class Client(Protocol):
    """Reads and writes objects; raises `ClientError` with Kubernetes' reason."""

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, or None if it does not exist."""

    async def list(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        limit: int = 0,
        rest: str = "",
        fields: str = "",
        labels: str = "",
    ) -> ObjectList:
        """Return objects of a kind, from all namespaces unless one is given.

        `fields` and `labels` are selectors as Kubernetes writes them: `spec.nodeName=a,a!=b`.
        """

    def watch(
        self,
        struct: type[Any],
        namespace: str = "",
        *,
        after: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncIterator[Event]:
        """Yield events after a resource version; raise `ExpiredError` if that is too old.

        The watch ends when the server ends it, as servers do from time to time, and raises another
        `ClientError` when it is interrupted.
        """

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write and return the stored object.

        That is None where the server responds without an object: to a binding, and to some
        deletions.
        """


async def list_all(
    client: Client,
    struct: type[Any],
    namespace: str = "",
    *,
    fields: str = "",
    labels: str = "",
    limit: int = PAGE,
    allows_gaps: bool = False,
) -> ObjectList:
    """Return all objects of a kind at one resource version; start again if that expires.

    Raise UnreadableError for objects that cannot be read, unless the list may have gaps.
    """
    for _ in range(RESTARTS_MAX):
        try:
            found = await _pages(
                client, struct, namespace, fields=fields, labels=labels, limit=limit
            )
            break
        except ExpiredError:
            continue
    else:
        found = await client.list(struct, namespace, fields=fields, labels=labels)
    if found.unreadable and not allows_gaps:
        first = found.unreadable[0]
        raise UnreadableError(f"{first}: {first.cause}")
    return found


async def _pages(
    client: Client, struct: type[Any], namespace: str, *, fields: str, labels: str, limit: int
) -> ObjectList:
    values: list[Any] = []
    unreadable: list[Unreadable] = []
    rest = ""
    for _ in range(PAGES_MAX):
        page = await client.list(
            struct, namespace, limit=limit, rest=rest, fields=fields, labels=labels
        )
        if not rest and not page.continue_token:
            return page
        values.extend(page.values)
        unreadable.extend(page.unreadable)
        rest = page.continue_token
        if not rest:
            return ObjectList(tuple(values), page.revision, "", tuple(unreadable))
    raise ExpiredError(f"{struct.__name__}: the list does not end")


# --- transport ------------------------------------------------------------------------------------


class Request(NamedTuple):
    """A request to a server."""

    method: str
    path: str  # quoted, begins with /
    query: str = ""  # quoted
    body: bytes = b""
    content_type: str = JSON

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing and may be sent twice."""
        return self.method == "GET"


class Response(NamedTuple):
    """A server's response."""

    status: int
    body: bytes
    retry_after: str = ""
    warnings: tuple[str, ...] = ()


class Transport(Protocol):
    """Carries requests, over HTTP or by a call in the process, or raises `UnavailableError`."""

    async def send(self, request: Request) -> Response:
        """Return the response to a request, with any status."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Return the parts of a response as they arrive; raise `ClientError` for an error status.

        The iterator ends when the server ends the response, and raises when it is interrupted.
        """

    async def renew(self) -> bool:
        """Get new credentials after the server rejected these; return False if there are none."""

    async def close(self) -> None:
        """Close all connections."""
