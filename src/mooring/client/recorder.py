"""Events told to users: written behind, put together, never failing whoever tells them.

Kubernetes' programs tell events in two styles, and `kubectl` shows both; `correlating` has them.
What is told about one object is written in order; about others, at the same time. What waits to be
written is bounded: what is too much is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

from msgspec.structs import replace

from mooring.api.core.references import ObjectReference
from mooring.api.timestamp import MicroTimestamp
from mooring.client.contract import Client
from mooring.client.correlating import (
    SERIES_OVER_S,
    Again,
    Correlator,
    CountCorrelator,
    SeriesCorrelator,
    Source,
    Step,
    Told,
    key_of,
)
from mooring.client.errors import (
    AccessError,
    AlreadyExistsError,
    ClientError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from mooring.client.writes import Create, Patch, Tell
from mooring.kit.backoff import Backoff
from mooring.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

# How many objects' events are written at the same time. Few: when there is much to do, events wait,
# and not what they tell of.
LANES = 4
WAITING_MAX = 5000
TRIES_MAX = 12
MESSAGE_BYTES_MAX = 1024
BACKOFF = Backoff(first_s=0.5, longest_s=10.0, jitter=0.25)


class Style(Enum):
    """How events are put together."""

    SERIES = SeriesCorrelator
    COUNTS = CountCorrelator


class Recorder:
    """Tells events about objects, as a component of a cluster."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        style: Style = Style.COUNTS,
        instance: str = "",
        clock: Clock = REAL,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._client = client
        self._correlator: Correlator = style.value(Source(component, instance))
        self._clock = clock
        self._random = random
        self._lanes = [_Lane() for _ in range(LANES)]
        self._open = 0  # told, and not yet written or given up
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many events were too many to be written."""
        return self._dropped + self._correlator.dropped

    def tell(self, tell: Tell) -> None:
        """Have an event recorded soon; returns at once and never raises."""
        if self._open >= WAITING_MAX:
            if not self._dropped:
                LOG.warning("events are dropped: %d wait to be written", WAITING_MAX)
            self._dropped += 1
            return
        try:
            step = self._correlator.note(self._told(tell))
        except Exception:
            LOG.exception("event %s cannot be told", tell.reason)
            return
        if step is not None:
            self._add(step, hash(key_of(reference_to(tell.about))))

    async def drained(self) -> None:
        """Wait until all that was told is written, or given up."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._finish())
            for lane in self._lanes:
                tasks.create_task(self._write_all(lane))

    @asynccontextmanager
    async def running(self, stop_s: float = 2.0) -> AsyncIterator[Recorder]:
        """Write events for as long as a block lasts; what was told in it is written at its end."""
        task = asyncio.create_task(self.run())
        try:
            yield self
            try:
                async with asyncio.timeout(stop_s):
                    await self.drained()
            except TimeoutError:
                LOG.warning("%d events were not written", self._open)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # --- within -----------------------------------------------------------------------------------

    def _told(self, tell: Tell) -> Told:
        tell = replace(tell, message=_bounded(tell.message))
        at = MicroTimestamp(self._clock.now())
        return Told(tell, reference_to(tell.about), at, self._clock.monotonic())

    def _add(self, step: Step, number: int) -> None:
        self._open += 1
        self._is_idle.clear()
        self._lanes[number % LANES].add(step)

    async def _finish(self) -> None:
        """Have the last counts written of what is over."""
        while True:
            await self._clock.sleep(SERIES_OVER_S / 2)
            for step in self._correlator.finish(self._clock.monotonic()):
                self._add(step, id(step))

    async def _write_all(self, lane: _Lane) -> None:
        while True:
            step = await lane.take()
            try:
                await self._write(step)
            except ClientError as error:
                LOG.warning("an event was not written: %s", error)
            except Exception:
                LOG.exception("an event was not written")
            finally:
                self._open -= 1
                if not self._open:
                    self._is_idle.set()

    async def _write(self, step: Step) -> None:
        match step:
            case Create():
                await self._try(step)
            case Again(patch=patch, create=create):
                try:
                    await self._try(patch)
                except NotFoundError:  # events do not stay for ever
                    await self._try(create)

    async def _try(self, write: Create | Patch) -> None:
        """Write, again for a while if the server cannot be reached."""
        for tries in range(1, TRIES_MAX + 1):
            try:
                await self._client.write(write)
                return
            except AlreadyExistsError:
                return  # It was written, and the answer was lost.
            except AccessError:
                raise
            except (UnavailableError, TooManyRequestsError):
                if tries == TRIES_MAX:
                    raise
                await self._clock.sleep(BACKOFF.delay_s(tries, self._random))


class _Lane:
    """What is to be written one after the other."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque()
        self._has_some = asyncio.Event()

    def add(self, step: Step) -> None:
        self._steps.append(step)
        self._has_some.set()

    async def take(self) -> Step:
        while not self._steps:
            self._has_some.clear()
            await self._has_some.wait()
        return self._steps.popleft()


def reference_to(value: Any) -> ObjectReference:
    """Return the reference to an object; one that is a reference stays as it is."""
    if isinstance(value, ObjectReference):
        return value
    metadata = value.metadata
    return ObjectReference(
        kind=value.kind or type(value).__name__,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=value.api_version,
        resource_version=metadata.resource_version,
    )


def _bounded(message: str) -> str:
    data = message.encode("utf-8", "replace")
    if len(data) <= MESSAGE_BYTES_MAX:
        return message
    return data[: MESSAGE_BYTES_MAX - 4].decode("utf-8", "ignore") + " ..."
