"""One etcd watch over all keys below the root, which feeds the broadcaster.

So any number of watches costs etcd one, and all backends share the broadcaster. When the connection
breaks, the feed resumes where it stopped; watches do not notice, unless another etcd client
compacted changes meanwhile.

History is read by another etcd watch, also over the whole root: the broadcaster's revision is that
of a change below the root, so a reader that starts before it reaches it, and then knows that
nothing is missing. A watch over a narrower prefix might wait for a change that never comes.
(Progress notifications would help, but etcd before 3.4.25 sends them too early.)

A watch starts at the revision itself, not one later: etcd rejects the former exactly if a later
change may be compacted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from moorage.store.broadcaster import Broadcaster, HistoryPage
from moorage.store.contract import KeyChange
from moorage.store.errors import StoreError, TooOldError, UnavailableError
from moorage.store.etcd.client import KeySpace, Members, store_error
from moorage.wire import etcd_pb2 as pb
from moorage.wire import grpc

PAGE_CHANGES_MAX = 2000
PAGE_BYTES_MAX = 8 * 2**20
ANSWER_S_MAX = 30.0  # for history that exists
PAUSE_S_FIRST = 0.05
PAUSE_S_MAX = 2.0


class WatchFeed:
    """Publishes the changes below a root."""

    def __init__(self, members: Members, keys: KeySpace, revision: int) -> None:
        self.broadcaster = Broadcaster(revision, self._read_history)
        self._members = members
        self._keys = keys
        self._advanced = asyncio.Event()

    async def run(self) -> None:
        """Feed the broadcaster until cancelled."""
        pause_s = PAUSE_S_FIRST
        while True:
            try:
                async with aclosing(self._responses(self.broadcaster.revision)) as responses:
                    async for response in responses:
                        self._publish(response.events)
                        pause_s = PAUSE_S_FIRST
            except TooOldError as fault:
                # All watches missed changes; the feed starts again from the compacted revision.
                self.broadcaster.cut_all(fault)
                self.broadcaster.revision = fault.compacted or self.broadcaster.revision
            except StoreError:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def reach(self, revision: int) -> None:
        """Wait until the broadcaster has a revision."""
        while self.broadcaster.revision < revision:
            self._advanced.clear()
            await self._advanced.wait()

    def _publish(self, events: Sequence[pb.Event]) -> None:
        """Publish new events; etcd begins with the requested revision itself."""
        new = [event for event in events if event.kv.mod_revision > self.broadcaster.revision]
        if not new:
            return
        changes = [self._keys.change(event) for event in new if not self._is_mark(event)]
        complete = [change for change in changes if change is not None]
        newest = new[-1].kv.mod_revision
        if len(complete) < len(changes):
            # Another client compacted changes we had not read, so previous values are missing.
            self.broadcaster.cut_all(TooOldError(self.broadcaster.revision, newest))
        else:
            self.broadcaster.publish(complete)
        self.broadcaster.revision = newest
        self._advanced.set()

    async def _read_history(self, prefix: str, after: int, through: int) -> HistoryPage:
        """Return the next changes below a prefix, as many as the bounds allow."""
        changes: list[KeyChange] = []
        bytes_left = PAGE_BYTES_MAX
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                async with aclosing(self._events(after)) as events:
                    async for event in events:
                        revision = event.kv.mod_revision
                        if after < revision <= through and self._is_below(prefix, event):
                            changes.append(self._change(event, after))
                            bytes_left -= event.ByteSize()
                        is_full = bytes_left <= 0 or len(changes) >= PAGE_CHANGES_MAX
                        if revision >= through or is_full:
                            return HistoryPage(changes, min(revision, through))
        except TimeoutError:
            raise UnavailableError(f"etcd: no changes within {ANSWER_S_MAX:g} s") from None
        raise UnavailableError("etcd: a watch ended")

    def _change(self, event: pb.Event, after: int) -> KeyChange:
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
        """Yield the responses of a watch over all keys from a revision; raise when it ends."""
        request = pb.WatchCreateRequest(
            key=self._keys.all.start,
            range_end=self._keys.all.end,
            start_revision=max(start, 1),  # 0 would mean from now on
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
            fault = store_error(error, start)
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
