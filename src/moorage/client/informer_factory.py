"""Informers of many kinds that share one cache, one informer for each kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from moorage.client.contract import Client
from moorage.client.indexer import Indexer
from moorage.client.informers import BACKOFF, Handler, Informer
from moorage.kit.backoff import Backoff
from moorage.kit.clock import REAL, Clock


class InformerFactory:
    """Informers of many kinds that share one cache (client-go's SharedInformerFactory)."""

    def __init__(
        self,
        client: Client,
        *,
        random: Callable[[], float],
        clock: Clock = REAL,
        backoff: Backoff = BACKOFF,
        transform: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.objects = Indexer()
        self._transform = transform
        self._client = client
        self._random = random
        self._clock = clock
        self._backoff = backoff
        self._informers: dict[type[Any], Informer] = {}

    def informer_for(
        self,
        struct: type[Any],
        *,
        namespace: str = "",
        fields: str = "",
        optional: bool = False,
    ) -> Informer:
        """Return the informer of a kind, created by the first call.

        The selection must be the same every time: the cache has each kind once.
        """
        found = self._informers.get(struct)
        selection = {"namespace": namespace, "fields": fields, "labels": ""}
        if found is not None and any(selection.values()) and found.selection != selection:
            raise ValueError(f"{struct.__name__} has an informer with another selection")
        if found is None:
            found = self._informers[struct] = Informer(
                self._client,
                struct,
                self.objects,
                namespace=namespace,
                fields=fields,
                optional=optional,
                random=self._random,
                clock=self._clock,
                backoff=self._backoff,
                transform=self._transform,
            )
        return found

    def add_event_handler(self, struct: type[Any], handler: Handler) -> None:
        """Add an event handler for a kind, and an informer if necessary."""
        self.informer_for(struct).add_event_handler(handler)

    @property
    def synced(self) -> bool:
        """Whether all informers have synced."""
        return all(informer.synced for informer in self._informers.values())

    @property
    def causes(self) -> dict[str, str]:
        """Why kinds are not current, by name."""
        return {
            struct.__name__: informer.cause
            for struct, informer in self._informers.items()
            if informer.cause
        }

    async def wait_for_sync(self) -> None:
        """Wait until all informers have synced."""
        for informer in tuple(self._informers.values()):
            await informer.wait_for_sync()

    async def run(self) -> None:
        """Run all informers until cancelled, except those created later."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Indexer]:
        """Run all informers during a block, which begins when they have synced."""
        task = asyncio.create_task(self.run())
        waiting = asyncio.create_task(self.wait_for_sync())
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield self.objects
        finally:
            task.cancel()
            waiting.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)
