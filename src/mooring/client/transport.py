"""What carries requests to a server and brings back answers; HTTP, or a call in the process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

JSON = "application/json"


class Request(NamedTuple):
    """What is asked of a server."""

    method: str
    path: str  # quoted, begins with /
    query: str = ""  # quoted
    body: bytes = b""
    content_type: str = JSON

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing, so that it may be sent twice."""
        return self.method == "GET"


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    retry_after: str = ""
    warnings: tuple[str, ...] = ()


class Transport(Protocol):
    """Carries requests; what it cannot carry is an `UnavailableError`."""

    async def ask(self, request: Request) -> Answer:
        """Return the answer to a request, with whatever status."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Return the parts of an answer as they come; a refusal is raised as `ClientError`.

        The iterator ends when the server ends the answer, and raises when it is cut off.
        """

    async def renew(self) -> bool:
        """Get new credentials after the server refused these; False if there are none."""

    async def close(self) -> None:
        """Close what is open."""
