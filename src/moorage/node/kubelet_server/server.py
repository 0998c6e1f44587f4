"""The kubelet server on the network: TLS, authentication, one exchange per connection.

Only the API server may connect, by the name in its certificate. A client without a certificate gets
401, any other 403. A certificate of another authority ends the handshake.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from moorage.kit.bulkhead import FAULTS
from moorage.kit.connections import ConnectionLimits, Listener, StreamConnections, listen
from moorage.kit.http_head import HEAD_BYTES_MAX, Head, HeadError, read_head, response
from moorage.node.kubelet_server.handlers import (
    PLAIN,
    DeferredResponse,
    LogResponse,
    PlainResponse,
    PortForwardResponse,
    RequestHandler,
    Response,
    StreamResponse,
)
from moorage.node.kubelet_server.port_forward import (
    PortForwarder,
    RawChannel,
    is_tunnel_request,
    upgrading,
)
from moorage.node.kubelet_server.streaming import STALLED_S, WebSocket, accepting, converse
from moorage.node.runtime.contract import RuntimeRefusedError

LOG = logging.getLogger(__name__)

API_SERVER = "kube-apiserver-kubelet-client"
PORT = 10250
BACKLOG = 64
LIMITS = ConnectionLimits(connections_max=128, head_s=10.0)


class TlsFiles(NamedTuple):
    """The server's certificate and key, and the authority of its clients."""

    certificate: Path
    key: Path
    authority: Path


class KubeletServer:
    """Serves requests."""

    def __init__(
        self, handler: RequestHandler, files: TlsFiles, limits: ConnectionLimits = LIMITS
    ) -> None:
        self._handler = handler
        self._files = files
        self._limits = limits
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.verify_mode = ssl.CERT_OPTIONAL
        self._context.load_verify_locations(files.authority)
        self._context.set_alpn_protocols(["http/1.1"])
        self._open = StreamConnections(self._serve, HEAD_BYTES_MAX)
        self._listener: Listener | None = None
        self.renew()

    def renew(self) -> None:
        """Use the current certificate files for new connections."""
        self._context.load_cert_chain(self._files.certificate, self._files.key)

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._listener is not None
        number: int = self._listener.sockets[0].getsockname()[1]
        return number

    async def listen(self, address: str, port: int) -> None:
        """Accept connections from now on; raises OSError if it cannot."""
        sockets = await listen(address, port, BACKLOG)
        self._listener = Listener(
            sockets, self._open.protocol, self._context, self._limits, self._open.__len__
        )

    async def close(self) -> None:
        """Stop accepting connections, and end the open ones."""
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()
        await self._open.end()

    # --- one connection ---------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.head_s):
                head = await read_head(reader)
            if head is not None:
                await self._carry(head, reader, writer)
        except HeadError as error:
            await _send(writer, PlainResponse(f"{error}\n".encode(), HTTPStatus.BAD_REQUEST))
        except (OSError, _BrokenOffError):
            writer.transport.abort()  # so that nobody takes a partial response for a complete one
        except Exception as error:
            FAULTS.note("kubelet server", "a connection", error, "ends")
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _carry(
        self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answer: Response | None = _check_client(writer.get_extra_info("peercert"))
        match answer or self._handler.answer(head):
            case PlainResponse() as page:
                await _send(writer, page)
            case DeferredResponse(page):
                await _send(writer, await page)
            case LogResponse(parts):
                await _until_gone(_send_parts(writer, parts), reader)
            case StreamResponse(protocol, container, options):
                writer.write(accepting(head, protocol))
                socket = WebSocket(reader, writer)
                await converse(self._handler.runtime, container, options, socket)
            case PortForwardResponse(pod, uid):
                writer.write(upgrading(head))
                is_tunnel = is_tunnel_request(head)
                channel = WebSocket(reader, writer) if is_tunnel else RawChannel(reader, writer)
                await PortForwarder(channel, pod, uid).run()


@asynccontextmanager
async def serving(
    handler: RequestHandler,
    files: TlsFiles,
    address: str = "0.0.0.0",  # noqa: S104  # as kubelets do
    port: int = PORT,
) -> AsyncIterator[KubeletServer]:
    """Run a kubelet server for as long as a block lasts; raises OSError if it cannot listen."""
    endpoint = KubeletServer(handler, files)
    await endpoint.listen(address, port)
    try:
        yield endpoint
    finally:
        await endpoint.close()


class _BrokenOffError(Exception): ...


def _check_client(certificate: Any) -> PlainResponse | None:
    """Return the error response for a client certificate; None if it is the API server's."""
    if not certificate:
        return PlainResponse(b"Unauthorized", HTTPStatus.UNAUTHORIZED)
    names = [
        value
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    if names == [API_SERVER]:
        return None
    return PlainResponse(f"Forbidden (user={', '.join(names)})".encode(), HTTPStatus.FORBIDDEN)


async def _until_gone(work: Any, reader: asyncio.StreamReader) -> None:
    """Await something until it is done or the client goes away."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _send(writer: asyncio.StreamWriter, page: PlainResponse) -> None:
    writer.write(response(page.body, page.code, page.type))
    await _drain(writer)


async def _send_parts(writer: asyncio.StreamWriter, parts: AsyncIterator[bytes]) -> None:
    lines = (
        "HTTP/1.1 200 OK",
        f"Content-Type: {PLAIN}",
        "Transfer-Encoding: chunked",
        "Connection: close",
    )
    writer.write("\r\n".join((*lines, "", "")).encode())
    try:
        async for part in parts:
            if part:
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await _drain(writer)
    except RuntimeRefusedError as error:
        raise _BrokenOffError(str(error)) from None
    finally:
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()
    writer.write(b"0\r\n\r\n")
    await _drain(writer)


async def _drain(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(STALLED_S):
        await writer.drain()
