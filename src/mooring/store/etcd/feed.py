"""The feed: one watch of etcd over all keys below the root, which feeds the hub.

So any number of watches costs etcd one, and all backends have the same hub. When the connection
breaks the feed goes on where it was; watches do not notice, unless changes were compacted
meanwhile, which only someone beside the store does.

The past is read by another watch of etcd, over the whole root as well: the hub's revision is that
of a change below the root, so whoever reads on from before it comes by it, and knows then that
nothing is missing. A watch over less might wait for a change that never comes. (Progress
notifications would tell, too, but etcd before 3.4.25 sends them too early.)

A watch starts at the revision after which changes are wanted, not one later: etcd refuses the
former exactly if a change that is wanted may be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from mooring.store.contract import Change
from mooring.store.errors import StoreError, TooOldError, UnavailableError
from mooring.store.etcd.endpoints import Members
from mooring.store.etcd.forms import Keys, fault_of
from mooring.store.hub import Hub, Stretch
from mooring.wire import etcd_pb2 as pb
from mooring.wire import grpc

STRETCH_CHANGES_MAX = 2000
STRETCH_BYTES_MAX = 8 * 2**20
ANSWER_S_MAX = 30.0  # for a past that is known to be there
PAUSE_S_FIRST = 0.05
PAUSE_S_MAX = 2.0


class Feed:
    """Publishes what changes below a root."""

    def __init__(self, members: Members, keys: Keys, revision: int) -> None:
        self.hub = Hub(revision, self._past)
        self._members = members
        self._keys = keys
        self._advanced = asyncio.Event()

    async def run(self) -> None:
        """Feed the hub until cancelled."""
        pause_s = PAUSE_S_FIRST
        while True:
            try:
                async with aclosing(self._responses(self.hub.revision)) as responses:
                    async for response in responses:
                        self._publish(response.events)
                        pause_s = PAUSE_S_FIRST
            except TooOldError as fault:
                # What happened meanwhile is lost to all watches; the feed starts anew from now.
                self.hub.cut_all(fault)
                self.hub.revision = fault.compacted or self.hub.revision
            except StoreError:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def reach(self, revision: int) -> None:
        """Wait until the hub has a revision."""
        while self.hub.revision < revision:
            self._advanced.clear()
            await self._advanced.wait()

    def _publish(self, events: Sequence[pb.Event]) -> None:
        """Publish what is new; etcd starts with the revision that was asked for."""
        new = [event for event in events if event.kv.mod_revision > self.hub.revision]
        if not new:
            return
        changes = [self._keys.change(event) for event in new if not self._is_mark(event)]
        known = [change for change in changes if change is not None]
        newest = new[-1].kv.mod_revision
        if len(known) < len(changes):
            # Someone compacted what we had not read; what was there before is not known.
            self.hub.cut_all(TooOldError(self.hub.revision, newest))
        else:
            self.hub.publish(known)
        self.hub.revision = newest
        self._advanced.set()

    async def _past(self, prefix: str, after: int, through: int) -> Stretch:
        """Return the next changes below a prefix, as many as the bounds allow."""
        changes: list[Change] = []
        bytes_left = STRETCH_BYTES_MAX
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                async with aclosing(self._events(after)) as events:
                    async for event in events:
                        revision = event.kv.mod_revision
                        if after < revision <= through and self._is_below(prefix, event):
                            changes.append(self._known(event, after))
                            bytes_left -= event.ByteSize()
                        is_full = bytes_left <= 0 or len(changes) >= STRETCH_CHANGES_MAX
                        if revision >= through or is_full:
                            return Stretch(changes, min(revision, through))
        except TimeoutError:
            raise UnavailableError(f"etcd: no changes within {ANSWER_S_MAX:g} s") from None
        raise UnavailableError("etcd: a watch ended")

    def _known(self, event: pb.Event, after: int) -> Change:
        change = self._keys.change(event)
        if change is None:
            raise TooOldError(after)
        return change

    async def _events(self, start: int) -> AsyncGenerator[pb.Event, None]:
        async with aclosing(self._responses(start)) as responses:
            async for response in responses:
                for event in response.events:
                    yield event

    async def _responses(self, start: int) -> AsyncGenerator[pb.WatchResponse, None]:
        """Yield what a watch of all keys from a revision brings; raise when it ends."""
        request = pb.WatchCreateRequest(
            key=self._keys.all.start,
            range_end=self._keys.all.end,
            start_revision=max(start, 1),  # 0 would mean: from now on
            prev_kv=True,
        )
        stub = self._members.stub
        call = stub.watch()
        try:
            await call.write(pb.WatchRequest(create_request=request))
            async for response in call:
                if response.compact_revision:
                    raise TooOldError(start, response.compact_revision)
                if response.canceled:
                    raise UnavailableError(f"etcd: watch cancelled: {response.cancel_reason}")
                yield response
        except grpc.aio.AioRpcError as error:
            fault = fault_of(error, start)
            if isinstance(fault, UnavailableError):
                self._members.leave(stub)
            raise fault from error
        finally:
            call.cancel()
        raise UnavailableError("etcd: a watch ended")

    def _is_below(self, prefix: str, event: pb.Event) -> bool:
        return event.kv.key.startswith(self._keys.encode(prefix)) and not self._is_mark(event)

    def _is_mark(self, event: pb.Event) -> bool:
        return event.kv.key == self._keys.mark
