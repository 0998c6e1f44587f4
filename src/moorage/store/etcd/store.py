"""The store on etcd: the contract's verbs as etcd's transactions.

Every write is a transaction that compares the key's revision first, so it makes one change or none.
A key with a time to live has a lease of its own, because etcd deletes all keys of a lease in one
revision, and in the contract a revision has one key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from google.protobuf.message import Message

from moorage.kit.cancellation import is_cancelled
from moorage.store.broadcaster import BroadcastWatch
from moorage.store.contract import Deletion, Entry, Page
from moorage.store.errors import (
    ClosedError,
    ConflictError,
    KeyExistsError,
    KeyMissingError,
    StoreError,
    TooOldError,
    UnavailableError,
)
from moorage.store.etcd.client import (
    KeyRange,
    KeySpace,
    Members,
    TlsFiles,
    read_endpoint,
    store_error,
)
from moorage.store.etcd.watch_feed import WatchFeed
from moorage.store.keys import check_key, check_list, check_prefix, check_revision, check_write
from moorage.wire import etcd_pb2 as pb
from moorage.wire import grpc
from moorage.wire.etcd import EtcdStub

ROOT = "/moorage/"
CALL_S_MAX = 10.0
PAGE_ENTRIES = 1000  # the page size of a list without limit
NEVER = -1  # no entry has this revision

R = TypeVar("R")  # a response
Method = Callable[[EtcdStub], "grpc.aio.UnaryUnaryMultiCallable[Any, R]"]


@asynccontextmanager
async def open_etcd(
    targets: str | Sequence[str], *, root: str = ROOT, trust: TlsFiles | None = None
) -> AsyncIterator[EtcdStore]:
    """Open the store below a root of an etcd, such as `127.0.0.1:2379`; close it at the end."""
    store = await EtcdStore.open(targets, root=root, trust=trust)
    try:
        yield store
    finally:
        await store.close()


class EtcdStore:
    """A store in etcd, for the event loop that opened it."""

    def __init__(self, members: Members, keys: KeySpace, revision: int) -> None:
        self._members = members
        self._keys = keys
        self._feed = WatchFeed(members, keys, revision)
        self._feeding = asyncio.create_task(self._feed.run())
        self._is_closed = False

    @classmethod
    async def open(
        cls, targets: str | Sequence[str], *, root: str = ROOT, trust: TlsFiles | None = None
    ) -> EtcdStore:
        """Return the store below a root of an etcd, or raise UnavailableError."""
        keys = KeySpace(root)
        listed = (targets,) if isinstance(targets, str) else targets
        endpoints = [read_endpoint(target) for target in listed]
        members = Members(endpoints, None if trust is None else trust.credentials())
        try:
            revision = await _first_mark(members, keys)
        except BaseException:
            await members.close()
            raise
        return cls(members, keys, revision)

    # --- reading

    async def trouble(self) -> str:
        """Return nothing: what keeps etcd from being written is told when it is written to."""
        return ""

    async def revision(self) -> int:
        """Return the newest revision."""
        return (
            await self._range(KeyRange(self._keys.mark, b""), 0, count_only=True)
        ).header.revision

    async def get(self, key: str, *, at: int | None = None) -> Entry | None:
        """Return the entry of a key, now or at a revision."""
        check_key(key)
        check_revision(at or 0)
        found = await self._range(KeyRange(self._keys.encode(key), b""), _revision(at))
        return self._keys.entry(found.kvs[0]) if found.kvs else None

    async def list(
        self, prefix: str, *, limit: int | None = None, after: str = "", at: int | None = None
    ) -> Page:
        """Return entries below the prefix whose keys come after a key, now or at a revision."""
        check_list(prefix, limit, after)
        check_revision(at or 0)
        page = await self._page(prefix, limit or PAGE_ENTRIES, after, at)
        entries = [*page.entries]
        while limit is None and page.remaining:
            page = await self._page(prefix, PAGE_ENTRIES, entries[-1].key, page.revision)
            entries += page.entries
        return Page(entries, page.revision, page.remaining)

    async def watch(self, prefix: str, *, after: int, events_max: int = 10_000) -> BroadcastWatch:
        """Watch all changes after a revision, or raise RevisionError."""
        check_prefix(prefix)
        check_revision(after)
        await self._range(KeyRange(self._keys.mark, b""), max(after, 1), count_only=True)
        return self._feed.broadcaster.watch(prefix, after, events_max)

    async def _page(self, prefix: str, limit: int, after: str, at: int | None) -> Page:
        found = await self._range(self._keys.below(prefix, after), _revision(at), limit=limit)
        entries = [self._keys.entry(kv) for kv in found.kvs]
        revision = found.header.revision if at is None else at
        return Page(entries, revision, found.count - len(entries))

    async def _range(
        self, span: KeyRange, revision: int, *, limit: int = 0, count_only: bool = False
    ) -> pb.RangeResponse:
        request = pb.RangeRequest(
            key=span.start,
            range_end=span.end,
            revision=revision,
            limit=limit,
            count_only=count_only,
        )
        return await self._call(lambda stub: stub.range, request, revision)

    # --- writing

    async def create(self, key: str, value: bytes, *, ttl_s: int | None = None) -> Entry:
        """Create a key, or raise KeyExistsError."""
        check_write(key, value, ttl_s)
        done = await self._put(key, value, 0, ttl_s)
        revision = done.header.revision
        if done.succeeded:
            return Entry(key, value, revision, revision)
        raise KeyExistsError(self._keys.entry(done.responses[0].response_range.kvs[0]))

    async def update(
        self, key: str, value: bytes, *, expected: int, ttl_s: int | None = None
    ) -> Entry:
        """Update a key at the expected revision, or raise ConflictError or KeyMissingError."""
        check_write(key, value, ttl_s)
        done = await self._put(key, value, expected if expected > 0 else NEVER, ttl_s)
        if done.succeeded:
            previous = done.responses[0].response_put.prev_kv
            return Entry(key, value, previous.create_revision, done.header.revision)
        raise self._mismatch(key, expected, done)

    async def delete(self, key: str, *, expected: int) -> Deletion:
        """Delete a key at the expected revision, or raise as update does."""
        check_key(key)
        delete = pb.DeleteRangeRequest(key=self._keys.encode(key), prev_kv=True)
        compared = expected if expected > 0 else NEVER
        done = await self._transact(key, compared, pb.RequestOp(request_delete_range=delete))
        if done.succeeded:
            (previous,) = done.responses[0].response_delete_range.prev_kvs
            return Deletion(self._keys.entry(previous), done.header.revision)
        raise self._mismatch(key, expected, done)

    async def compact(self, revision: int) -> None:
        """Drop the history up to a revision; return when its space is free."""
        check_revision(revision)
        # The changes must have reached the broadcaster with their previous values.
        mark = await _write_mark(self._members.stub, self._keys)
        try:
            async with asyncio.timeout(CALL_S_MAX):
                await self._feed.reach(mark)
        except TimeoutError:
            raise UnavailableError(f"etcd: no changes within {CALL_S_MAX:g} s") from None
        request = pb.CompactionRequest(revision=revision, physical=True)
        with suppress(TooOldError):  # compacted already
            await self._call(lambda stub: stub.compact, request, revision)

    async def _put(
        self, key: str, value: bytes, expected: int, ttl_s: int | None
    ) -> pb.TxnResponse:
        put = pb.PutRequest(key=self._keys.encode(key), value=value, prev_kv=True)
        if ttl_s is None:
            return await self._transact(key, expected, pb.RequestOp(request_put=put))
        grant = pb.LeaseGrantRequest(TTL=ttl_s)
        put.lease = (await self._call(lambda stub: stub.grant_lease, grant)).ID
        done = await self._transact(key, expected, pb.RequestOp(request_put=put))
        if not done.succeeded:
            with suppress(StoreError):  # The lease expires by itself, only later.
                revoke = pb.LeaseRevokeRequest(ID=put.lease)
                await self._call(lambda stub: stub.revoke_lease, revoke)
        return done

    async def _transact(self, key: str, expected: int, operation: pb.RequestOp) -> pb.TxnResponse:
        """Do an operation if the key has a revision (0: does not exist), else read the key."""
        name = self._keys.encode(key)
        compare = pb.Compare(key=name, target=pb.Compare.MOD, mod_revision=expected)
        read = pb.RequestOp(request_range=pb.RangeRequest(key=name))
        request = pb.TxnRequest(compare=[compare], success=[operation], failure=[read])
        return await self._call(lambda stub: stub.transact, request)

    def _mismatch(self, key: str, expected: int, done: pb.TxnResponse) -> StoreError:
        found = done.responses[0].response_range.kvs
        if not found:
            return KeyMissingError(key)
        return ConflictError(self._keys.entry(found[0]), expected)

    async def _call(self, method: Method[R], request: Message, revision: int = 0) -> R:
        if self._is_closed:
            raise ClosedError
        stub = self._members.stub
        try:
            return await _answered(method(stub)(request, timeout=CALL_S_MAX), revision)
        except UnavailableError:
            self._members.leave(stub)
            raise
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise ClosedError from None  # gRPC cancels running calls when it closes.

    async def close(self) -> None:
        """Close; all watches end with ClosedError."""
        if self._is_closed:
            return
        self._is_closed = True
        self._feeding.cancel()
        await asyncio.wait([self._feeding])
        self._feed.broadcaster.close(ClosedError())
        await self._members.close()


async def _first_mark(members: Members, keys: KeySpace) -> int:
    """Write the mark to the first member that can be reached; return its revision."""
    for _ in range(len(members) if len(members) > 1 else 0):
        stub = members.stub
        try:
            return await _write_mark(stub, keys, waits=False)
        except UnavailableError:
            members.leave(stub)
    return await _write_mark(members.stub, keys)


async def _write_mark(stub: EtcdStub, keys: KeySpace, *, waits: bool = True) -> int:
    """Write the mark and return its revision; `waits` gives a member time to come up."""
    put = pb.RequestOp(request_put=pb.PutRequest(key=keys.mark))
    request = pb.TxnRequest(success=[put])
    call = stub.transact(request, timeout=CALL_S_MAX, wait_for_ready=waits)
    return (await _answered(call)).header.revision


async def _answered(call: Awaitable[R], revision: int = 0) -> R:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise store_error(error, revision) from error


def _revision(at: int | None) -> int:
    # For etcd, 0 means now and 1 is before the first write.
    return 0 if at is None else max(at, 1)
