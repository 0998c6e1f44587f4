"""The Transport protocol: carries requests to a server, over HTTP or by a call in the process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

JSON = "application/json"


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
    """Carries requests, or raises `UnavailableError`."""

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
