"""The store's keys, entries and changes as etcd has them, and etcd's faults as the store's.

# root: what all of the store's keys in etcd begin with; others may keep theirs beside it
# mark: a key below the root that no entry can have; it is written to know what comes before it
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.store.contract import Change, Deletion, Entry, Put
from mooring.store.errors import (
    BadRequestError,
    FutureRevisionError,
    NoRoomError,
    OverloadedError,
    StoreError,
    TooOldError,
    UnavailableError,
)
from mooring.store.keys import LAST
from mooring.wire import etcd_pb2 as pb
from mooring.wire import grpc

_FIRST = " "  # no key begins with less
_MARK = "\x00mark"


class Span(NamedTuple):
    """Keys of etcd, from the first up to the end, which is not among them."""

    start: bytes
    end: bytes


class Keys:
    """Keys of the store below a root of etcd."""

    def __init__(self, root: str) -> None:
        if not root.endswith("/"):
            raise BadRequestError(f"root {root!r}: must end with /")
        self._root = root
        self.mark = self.encode(_MARK)
        self.all = Span(self.encode("\x00"), self.encode(LAST))

    def encode(self, key: str) -> bytes:
        """Return a key as etcd has it."""
        return f"{self._root}{key}".encode()

    def decode(self, key: bytes) -> str:
        """Return a key of etcd as the store has it."""
        return key.decode()[len(self._root) :]

    def below(self, prefix: str, after: str = "") -> Span:
        """Return the keys below a prefix that come after a key."""
        start = f"{after}\x00" if after >= prefix and after else prefix
        return Span(self.encode(start or _FIRST), self.encode(prefix + LAST))

    def entry(self, found: pb.KeyValue) -> Entry:
        """Return what etcd holds for a key."""
        key = self.decode(found.key)
        return Entry(key, found.value, found.create_revision, found.mod_revision)

    def change(self, event: pb.Event) -> Change | None:
        """Return what happened; None if etcd no longer knows what was there before."""
        if event.type == pb.Event.DELETE:
            if not event.HasField("prev_kv"):
                return None
            return Deletion(self.entry(event.prev_kv), event.kv.mod_revision)
        entry = self.entry(event.kv)
        if event.HasField("prev_kv"):
            return Put(entry, self.entry(event.prev_kv))
        return Put(entry, None) if entry.created == entry.revision else None


def fault_of(error: grpc.aio.AioRpcError, revision: int = 0) -> StoreError:
    """Return what an error of etcd means; `revision` is what was asked for."""
    text = error.details() or ""
    match error.code():
        case grpc.StatusCode.OUT_OF_RANGE if "future" in text:
            return FutureRevisionError(revision)
        case grpc.StatusCode.OUT_OF_RANGE:
            return TooOldError(revision)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return BadRequestError(f"etcd: {text}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "space" in text:
            return NoRoomError(f"etcd: {text}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return OverloadedError(f"etcd: {text}")
        case code:
            return UnavailableError(f"etcd: {code.name}: {text}")
