"""TLS with client certificates: how a listener is set up, and who is at the other end.

A client may show a certificate of our authority, and need not. uvicorn keeps it to itself, so that
its protocol is extended by the one thing: the certificate goes into the scope of each request.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mooring.apiserver.app import PEER
from mooring.apiserver.corking import CorkedTransport

# Each connection has a buffer of this size; asyncio's own are so large that a thousand watches
# that only wait would take a quarter of a gigabyte.
BUFFER_BYTES = 32 * 1024
sslproto.SSLProtocol.max_size = BUFFER_BYTES


def server_context(folder: Path) -> ssl.SSLContext:
    """Return the context of a listener with the credentials in a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


class PeerProtocol(HttpToolsProtocol):
    """HTTP/1.1 that tells who is at the other end, and writes an answer at once."""

    _peer: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection; the handshake is over by now."""
        super().connection_made(CorkedTransport(transport))  # type: ignore[arg-type]
        connection: Any = transport.get_extra_info("ssl_object")
        self._peer = None if connection is None else connection.getpeercert(binary_form=True)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[PEER] = self._peer
