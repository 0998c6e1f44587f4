"""A client that asks only so much at the same time.

Hundreds of pods may have something to tell at once; each open connection costs memory here and at
the server, and none of them is faster for it.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from mooring.client.contract import Client
from mooring.client.errors import UnavailableError
from mooring.client.writes import Apply, Create, Delete, Patch, Update

T = TypeVar("T")

AT_ONCE = 16


class FewCalls:
    """Reads and writes through another client, few at the same time."""

    def __init__(self, client: Client, at_once: int = AT_ONCE) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(at_once)

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, or None when it is not there."""
        async with self._slots:
            return await self._client.get(struct, namespace, name)

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write; patches and deletions once more if the connection was lost.

        Ours name the version or the object that they are for, so that twice is like once.
        """
        async with self._slots:
            try:
                return await self._client.write(write)
            except UnavailableError:
                if not isinstance(write, Patch | Delete):
                    raise
            return await self._client.write(write)
