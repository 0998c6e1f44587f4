"""Slices of drivers that are not there are deleted, so that nobody is scheduled for them.

A driver has a while to come back, as when it is updated. At the start of the agent no driver has
registered yet, so all slices of the node go, but for those of drivers that are faster than we are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from mooring.api.resource.v1 import ResourceSlice
from mooring.client.contract import Client
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.writes import Delete, Target
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

DELAY_S = 30.0  # that a driver has to come back
BACKOFF = Backoff(first_s=1.0, longest_s=300.0, jitter=0.2)
PAGE = 500
ALL_DRIVERS = ""


class SliceWiper:
    """Deletes slices of this node; a watcher of which drivers are usable."""

    def __init__(
        self,
        client: Client,
        node: str,
        *,
        clock: Clock = REAL,
        delay_s: float = DELAY_S,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._client, self._node = client, node
        self._clock, self._delay_s, self._random = clock, delay_s, random
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._usable: set[str] = set()

    def usable(self, driver: str) -> None:
        """Leave the slices of a driver alone."""
        self._usable.add(driver)
        task = self._pending.pop(driver, None)
        if task is not None:
            task.cancel()

    def unusable(self, driver: str) -> None:
        """Delete the slices of a driver, unless it comes back in time."""
        self._usable.discard(driver)
        if driver not in self._pending:
            self._start(driver, self._delay_s)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[SliceWiper]:
        """Delete all slices of the node now; nothing is deleted any more at the end."""
        self._start(ALL_DRIVERS, 0.0)
        try:
            yield self
        finally:
            tasks = list(self._pending.values())
            self._pending.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, driver: str, delay_s: float) -> None:
        task = asyncio.create_task(self._wipe(driver, delay_s))
        self._pending[driver] = task

    async def _wipe(self, driver: str, delay_s: float) -> None:
        if delay_s:
            await self._clock.sleep(delay_s)
        failures, said = 0, ""
        while True:
            try:
                count = await self._delete_all(driver)
            except ClientError as error:
                failures += 1
                retry_s = BACKOFF.delay_s(failures, self._random)
                if error.message != said:
                    LOG.warning("slices of %s: %s; again in %.3g s", driver, error, retry_s)
                    said = error.message
                await self._clock.sleep(retry_s)
            else:
                break
        if count:
            LOG.info("deleted %d slices of %s", count, driver or "this node")
        if self._pending.get(driver) is asyncio.current_task():
            del self._pending[driver]

    async def _delete_all(self, driver: str) -> int:
        fields = f"spec.nodeName={self._node}" + (f",spec.driver={driver}" if driver else "")
        count, rest = 0, ""
        while True:
            page = await self._client.list(ResourceSlice, limit=PAGE, rest=rest, fields=fields)
            for found in page.values:
                if found.spec.driver in self._usable:
                    continue
                with contextlib.suppress(NotFoundError):
                    await self._client.write(Delete(Target.of(found)))
                    count += 1
            rest = page.rest
            if not rest:
                return count
