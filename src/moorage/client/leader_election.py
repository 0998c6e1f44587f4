"""Leader election: one leader among several programs, by a Lease.

    waiting ─► the lease is free or expired ─► leading ─► renewed every `retry_s`
       ▲                                          │
       └───── not renewed for `renew_s`, or lost ◄┘   the work is cancelled first

Only one program leads at a time, as far as clocks run equally fast: a leader that could not renew
for `renew_s` stops, and no other acquires the lease before `lease_s` have passed since it last saw
the lease change. Each uses its own monotonic clock, never the times in the lease, so clocks may
differ and jump. Of two concurrent updates the server rejects one.

A leader that stops releases the lease, so that the next need not wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.coordination import Lease, LeaseSpec
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import MicroTimestamp
from moorage.client.contract import Client
from moorage.client.errors import ClientError, ConflictError
from moorage.client.writes import Create, Update
from moorage.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

JITTER = 0.2
RELEASE_TRIES = 3

Work = Callable[[], Awaitable[None]]


class LeaseTimings(Struct, frozen=True):
    """How long a lease lasts, and how often it is renewed."""

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_s > self.retry_s * (1 + JITTER) > 0 or self.lease_s < 1:
            raise ValueError(
                "the lease duration must exceed the renew deadline, and that the retry period"
            )


class LeaderElector:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        random: Callable[[], float],
        terms: LeaseTimings = LeaseTimings(),  # noqa: B008  # a value
        clock: Clock = REAL,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._random = random
        self._terms = terms
        self._clock = clock
        self._seen: Lease | None = None
        self._seen_at = 0.0  # when we first saw the lease in this state
        self._held_at = 0.0  # when we last acquired or renewed it
        self._is_leader = False
        self._cause = ""

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads."""
        return self._is_leader

    @property
    def leader(self) -> str:
        """The last observed leader; empty if there was none."""
        return "" if self._seen is None else self._seen.spec.holder_identity or ""

    async def run(self, work: Work) -> None:
        """Do the work while leading; return when it is done or the lease is lost.

        When cancelled, cancel the work and then release the lease.
        """
        await self._acquire()
        LOG.info("%s leads %s/%s", self._identity, self._namespace, self._name)
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            else:
                LOG.warning("%s lost the lease %s", self._identity, self._name)
                renewing.result()  # raises what ended it, if that was not the lease
        finally:
            await _stopped(working, renewing)
            self._is_leader = False
            with suppress(TimeoutError):
                async with asyncio.timeout(self._terms.renew_s):
                    await self._release()

    # --- acquire and renew ------------------------------------------------------------------------

    async def _acquire(self) -> None:
        while not await self._try():
            jitter = 1 + JITTER * self._random()
            await self._clock.sleep(self._terms.retry_s * jitter)
        self._is_leader = True

    async def _renew(self) -> None:
        """Renew the lease; return once it is lost."""
        while True:
            await self._clock.sleep(self._terms.retry_s)
            left_s = self._held_at + self._terms.renew_s - self._clock.monotonic()
            if left_s <= 0:
                break
            if not await self._within(left_s) and self.leader != self._identity:
                break
        self._is_leader = False

    async def _within(self, left_s: float) -> bool:
        """Try to renew within the time left."""
        trying = asyncio.create_task(self._try())
        over = asyncio.Event()
        timer = self._clock.call_later(left_s, over.set)
        waiting = asyncio.create_task(over.wait())
        try:
            await asyncio.wait({trying, waiting}, return_when=asyncio.FIRST_COMPLETED)
            return trying.done() and trying.result()
        finally:
            timer.cancel()
            await _stopped(trying, waiting)

    async def _try(self) -> bool:
        """Acquire or renew the lease if possible; return whether we hold it."""
        try:
            if not (self._is_leader and await self._put(self._seen)):
                self._see(await self._client.get(Lease, self._namespace, self._name))
                return self._may_acquire() and await self._put(self._seen)
        except ClientError as error:
            self._note(str(error))
            return False
        self._note("")
        return True

    def _may_acquire(self) -> bool:
        if self._seen is None:
            return True
        spec = self._seen.spec
        if not spec.holder_identity or spec.holder_identity == self._identity:
            return True
        lease_s = spec.lease_duration_seconds or 0
        return self._clock.monotonic() >= self._seen_at + lease_s

    async def _put(self, old: Lease | None) -> bool:
        """Write ourselves as the holder; return False on a conflict."""
        lease = self._lease(old)
        write = Create(lease) if old is None else Update(lease)
        asked_at = self._clock.monotonic()
        try:
            self._see(await self._client.write(write))
        except ConflictError:
            return False
        # The lease counts from the request, not from the response.
        self._held_at = asked_at
        return True

    def _lease(self, old: Lease | None) -> Lease:
        now = MicroTimestamp(self._clock.now())
        metadata = ObjectMeta(namespace=self._namespace, name=self._name)
        before = LeaseSpec() if old is None else old.spec
        is_ours = before.holder_identity == self._identity
        changes = before.lease_transitions or 0
        spec = LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=int(self._terms.lease_s),
            acquire_time=before.acquire_time if is_ours else now,
            renew_time=now,
            lease_transitions=changes if is_ours or old is None else changes + 1,
            strategy=before.strategy,
        )
        return Lease(metadata=metadata, spec=spec) if old is None else replace(old, spec=spec)

    def _see(self, lease: Lease | None) -> None:
        """Record the lease, and the time if it changed."""
        old, self._seen = self._seen, lease
        if lease is None or old is None or lease.spec != old.spec or _uid(lease) != _uid(old):
            self._seen_at = self._clock.monotonic()

    # --- release ----------------------------------------------------------------------------------

    async def _release(self) -> None:
        """Release the lease if we hold it; on failure it expires by itself."""
        for _ in range(RELEASE_TRIES):
            try:
                lease = await self._client.get(Lease, self._namespace, self._name)
                if lease is None or lease.spec.holder_identity != self._identity:
                    return
                now = MicroTimestamp(self._clock.now())
                spec = replace(
                    lease.spec,
                    holder_identity="",
                    lease_duration_seconds=1,
                    acquire_time=now,
                    renew_time=now,
                )
                self._see(await self._client.write(Update(replace(lease, spec=spec))))
            except ConflictError:
                continue
            except ClientError as error:
                LOG.warning("cannot release the lease %s: %s", self._name, error)
            return

    def _note(self, cause: str) -> None:
        """Log a cause once."""
        if cause != self._cause and cause:
            LOG.warning("lease %s/%s: %s", self._namespace, self._name, cause)
        self._cause = cause


def _uid(lease: Lease) -> str:
    return lease.metadata.uid


async def _stopped(*tasks: asyncio.Future[object] | asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
