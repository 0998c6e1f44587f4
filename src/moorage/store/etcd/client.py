"""How to talk to etcd: its members, the keys below our root, and its errors as the store's.

The store calls one member until it cannot be reached, then the next. It never repeats a failed
call: nobody knows whether etcd carried it out, and the error says so.

# root: the prefix of all of the store's keys in etcd; others may keep theirs beside it
# mark: a key below the root that no entry can have; writing it yields a revision of our own
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from moorage.store.contract import Deletion, Entry, KeyChange, Put
from moorage.store.errors import (
    BadRequestError,
    FutureRevisionError,
    NoSpaceError,
    OverloadedError,
    StoreError,
    TooOldError,
    UnavailableError,
)
from moorage.store.keys import LAST
from moorage.wire import etcd_pb2 as pb
from moorage.wire import grpc
from moorage.wire.etcd import EtcdStub, open_channel

PORT = 2379


class TlsFiles(NamedTuple):
    """Files for TLS: the authority to trust and a client certificate; all are optional."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return gRPC's credentials, or raise OSError for a file that cannot be read."""
        authority, certificate, key = (None if file is None else file.read_bytes() for file in self)
        return grpc.ssl_channel_credentials(authority, key, certificate)


class EtcdEndpoint(NamedTuple):
    """A member as gRPC names it."""

    target: str
    has_tls: bool = False


def read_endpoint(text: str) -> EtcdEndpoint:
    """Parse a URL, HOST:PORT, or a gRPC target such as unix:PATH."""
    if text.startswith("unix:"):
        return EtcdEndpoint(text)
    parts = urlsplit(text if "://" in text else f"//{text}")
    if parts.scheme not in ("", "http", "https"):
        raise BadRequestError(f"{text!r}: must begin with http:// or https://")
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        raise BadRequestError(f"{text!r}: has no valid port") from None
    if not host or parts.path.strip("/") or parts.query or parts.username:
        raise BadRequestError(f"{text!r}: must be a URL with host and port, and nothing else")
    bracketed = f"[{host}]" if ":" in host else host
    return EtcdEndpoint(f"{bracketed}:{port}", parts.scheme == "https")


class Members:
    """Channels to all members; `stub` calls the active one."""

    def __init__(
        self, endpoints: Sequence[EtcdEndpoint], credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        if not endpoints:
            raise BadRequestError("no etcd endpoint is given")
        self._channels = [_channel(endpoint, credentials) for endpoint in endpoints]
        self._stubs = [EtcdStub(channel) for channel in self._channels]
        self._active = 0

    def __len__(self) -> int:
        return len(self._stubs)

    @property
    def stub(self) -> EtcdStub:
        """The methods of the active member."""
        return self._stubs[self._active]

    def leave(self, stub: EtcdStub) -> None:
        """Switch to the next member, unless that was done already."""
        if stub is self.stub:
            self._active = (self._active + 1) % len(self._stubs)

    async def close(self) -> None:
        """Close all channels."""
        await asyncio.gather(*(channel.close() for channel in self._channels))


def _channel(
    endpoint: EtcdEndpoint, credentials: grpc.ChannelCredentials | None
) -> grpc.aio.Channel:
    if not endpoint.has_tls:
        return open_channel(endpoint.target, None)
    return open_channel(endpoint.target, credentials or grpc.ssl_channel_credentials())


_FIRST = " "  # the least character a key can begin with
_MARK = "\x00mark"


class KeyRange(NamedTuple):
    """Keys in etcd from `start` up to `end`, which is excluded."""

    start: bytes
    end: bytes


class KeySpace:
    """The store's keys below a root in etcd."""

    def __init__(self, root: str) -> None:
        if not root.endswith("/"):
            raise BadRequestError(f"root {root!r}: must end with /")
        self._root = root
        self.mark = self.encode(_MARK)
        self.all = KeyRange(self.encode("\x00"), self.encode(LAST))

    def encode(self, key: str) -> bytes:
        """Return the key in etcd."""
        return f"{self._root}{key}".encode()

    def decode(self, key: bytes) -> str:
        """Return the store's key of a key in etcd."""
        return key.decode()[len(self._root) :]

    def below(self, prefix: str, after: str = "") -> KeyRange:
        """Return the keys below a prefix that come after a key."""
        start = f"{after}\x00" if after >= prefix and after else prefix
        return KeyRange(self.encode(start or _FIRST), self.encode(prefix + LAST))

    def entry(self, found: pb.KeyValue) -> Entry:
        """Return the entry of a key and value in etcd."""
        key = self.decode(found.key)
        return Entry(key, found.value, found.create_revision, found.mod_revision)

    def change(self, event: pb.Event) -> KeyChange | None:
        """Return the change of an event; None if etcd no longer has the previous value."""
        if event.type == pb.Event.DELETE:
            if not event.HasField("prev_kv"):
                return None
            return Deletion(self.entry(event.prev_kv), event.kv.mod_revision)
        entry = self.entry(event.kv)
        if event.HasField("prev_kv"):
            return Put(entry, self.entry(event.prev_kv))
        return Put(entry, None) if entry.created == entry.revision else None


def store_error(error: grpc.aio.AioRpcError, revision: int = 0) -> StoreError:
    """Translate etcd's error; `revision` is the requested one."""
    text = error.details() or ""
    match error.code():
        case grpc.StatusCode.OUT_OF_RANGE if "future" in text:
            return FutureRevisionError(revision)
        case grpc.StatusCode.OUT_OF_RANGE:
            return TooOldError(revision)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return BadRequestError(f"etcd: {text}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "space" in text:
            return NoSpaceError(f"etcd: {text}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return OverloadedError(f"etcd: {text}")
        case code:
            return UnavailableError(f"etcd: {code.name}: {text}")
