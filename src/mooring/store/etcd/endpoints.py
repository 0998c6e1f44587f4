"""The members of an etcd: where they are, how they are trusted, and which one is asked.

One is asked until it cannot be reached; then the next. A call that failed is not sent again:
nobody knows whether it was carried out, and whoever called is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from mooring.store.errors import BadRequestError
from mooring.wire import grpc
from mooring.wire.etcd import EtcdStub, open_channel

PORT = 2379


class Trust(NamedTuple):
    """Files for TLS: whom to believe, and what to be known by; all may be absent."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return what gRPC wants; raises OSError for a file that cannot be read."""
        read = [None if file is None else file.read_bytes() for file in self]
        authority, certificate, key = read
        return grpc.ssl_channel_credentials(authority, key, certificate)


class Endpoint(NamedTuple):
    """A member, as gRPC names it."""

    target: str
    has_tls: bool = False


def read_endpoint(text: str) -> Endpoint:
    """Return the endpoint of a URL, of HOST:PORT or of a target of gRPC such as unix:PATH."""
    if text.startswith("unix:"):
        return Endpoint(text)
    parts = urlsplit(text if "://" in text else f"//{text}")
    if parts.scheme not in ("", "http", "https"):
        raise BadRequestError(f"{text!r}: must begin with http:// or https://")
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        raise BadRequestError(f"{text!r}: has no valid port") from None
    if not host or parts.path.strip("/") or parts.query or parts.username:
        raise BadRequestError(f"{text!r}: must be a URL with host and port, and nothing else")
    shown = f"[{host}]" if ":" in host else host
    return Endpoint(f"{shown}:{port}", parts.scheme == "https")


class Members:
    """Channels to all members; `stub` is the one that is asked now."""

    def __init__(
        self, endpoints: Sequence[Endpoint], credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        if not endpoints:
            raise BadRequestError("no endpoint of etcd is named")
        self._channels = [_channel(endpoint, credentials) for endpoint in endpoints]
        self._stubs = [EtcdStub(channel) for channel in self._channels]
        self._asked = 0

    def __len__(self) -> int:
        return len(self._stubs)

    @property
    def stub(self) -> EtcdStub:
        """The methods of the member that is asked."""
        return self._stubs[self._asked]

    def leave(self, stub: EtcdStub) -> None:
        """Ask the next member from now on; without effect if that was done already."""
        if stub is self.stub:
            self._asked = (self._asked + 1) % len(self._stubs)

    async def close(self) -> None:
        """Close all channels."""
        await asyncio.gather(*(channel.close() for channel in self._channels))


def _channel(endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if not endpoint.has_tls:
        return open_channel(endpoint.target, None)
    return open_channel(endpoint.target, credentials or grpc.ssl_channel_credentials())
