"""pods/exec and pods/attach: a connection of the client becomes one to the node.

    client ── upgrade ──► server ── the same, with our certificate ──► node
           ◄─────────── bytes, both ways, whatever is spoken ─────────►

The node answers the upgrade, and what it answers is what the client gets.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

from mooring.apiserver.ending import Ending
from mooring.apiserver.exchange import Answer, Request, Streaming
from mooring.apiserver.paths import Target
from mooring.apiserver.reaching.dialling import DialError, dial
from mooring.apiserver.reaching.places import Place, find_place
from mooring.apiserver.service import Service
from mooring.apiserver.status import StatusError, bad_request, unexplained
from mooring.kit.heads import HEAD_BYTES_MAX, Head, HeadError, read_head

ANSWER_S = 30.0
READ_BYTES = 64 * 1024
REFUSAL_BYTES_MAX = 64 * 1024
QUERY_FIELDS_MAX = 1000
STALLED_S = 60.0

# What kubelets call the streams.
_FLAGS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_PASSED = (
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
    "x-stream-protocol-version",
)


async def open_tunnel(service: Service, target: Target, request: Request) -> Answer | Streaming:
    """Return a connection to a container, or the refusal of its node."""
    fields = _fields_of(request)
    place = await find_place(service, target, dict(reversed(fields)).get("container", ""))
    if place is None:
        raise bad_request(f"pod {target.name} does not have a host assigned")
    head = Head(("", "", ""), request.headers)
    if not head.upgrade:
        raise bad_request("Upgrade request required")
    reader, writer = await _dial(service, place)
    try:
        async with asyncio.timeout(ANSWER_S):
            writer.write(_request(place, target.subresource, fields, request))
            await writer.drain()
            return await _answered(reader, writer)
    except (OSError, TimeoutError, HeadError) as error:
        writer.transport.abort()
        raise _unreachable(str(error) or "i/o timeout") from None
    except BaseException:
        writer.transport.abort()
        raise


async def _dial(service: Service, place: Place) -> tuple[StreamReader, StreamWriter]:
    reader = StreamReader(limit=HEAD_BYTES_MAX)
    try:
        transport, protocol = await dial(service.nodes, place, lambda: StreamReaderProtocol(reader))
    except DialError as error:
        raise _unreachable(str(error)) from None
    return reader, StreamWriter(transport, protocol, reader, asyncio.get_running_loop())


async def _answered(reader: StreamReader, writer: StreamWriter) -> Answer | Streaming:
    head = await read_head(reader)
    if head is None:
        raise HeadError("EOF")
    code = int(head.first[1]) if head.first[1].isdigit() else 0
    if code == HTTPStatus.SWITCHING_PROTOCOLS:
        parts = Ending(_parts(head.raw, reader), writer.transport.abort)
        return Streaming(parts, upstream=_Upstream(writer).take)
    if not 400 <= code < 600:
        raise unexplained(f"invalid upgrade response: status code {code}")
    body = await _refusal(head, reader)
    writer.transport.abort()
    return Answer(body, code, head.headers.get("content-type", "text/plain; charset=utf-8"))


async def _refusal(head: Head, reader: StreamReader) -> bytes:
    length = head.headers.get("content-length", "")
    most = min(int(length[:9]), REFUSAL_BYTES_MAX) if length.isdigit() else REFUSAL_BYTES_MAX
    try:
        return await reader.readexactly(most)
    except asyncio.IncompleteReadError as error:
        return error.partial


class _Upstream:
    """What the client sends, on its way to the node."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    async def take(self, data: bytes) -> None:
        """Send data; raises OSError when the node does not take it."""
        self._writer.write(data)
        async with asyncio.timeout(STALLED_S):
            await self._writer.drain()


async def _parts(head: bytes, reader: StreamReader) -> AsyncIterator[bytes]:
    """Give what the node sends."""
    yield head
    with suppress(OSError):
        while data := await reader.read(READ_BYTES):
            yield data


def _fields_of(request: Request) -> list[tuple[str, str]]:
    """Return all fields of a query: the words of a command are as many fields of one name."""
    _, _, query = request.uri.partition("?")
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise bad_request(f"the query has more than {QUERY_FIELDS_MAX} fields") from None


def _request(place: Place, door: str, fields: list[tuple[str, str]], request: Request) -> bytes:
    flags = [
        (_FLAGS[name], "1")
        for name, value in dict(reversed(fields)).items()
        if name in _FLAGS and value.lower() not in ("0", "false")
    ]
    words = [(name, value) for name, value in fields if name == "command"]
    query = urlencode(sorted(flags) + words)
    passed = [(name, request.headers[name]) for name in _PASSED if name in request.headers]
    lines = (
        f"{request.method} {place.path(door)}?{query} HTTP/1.1",
        f"Host: {place.authority}",
        "Connection: Upgrade",
        f"Upgrade: {request.headers['upgrade']}",
        *([] if request.method == "GET" else ["Content-Length: 0"]),
        *(f"{name}: {value}" for name, value in passed),
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _unreachable(why: str) -> StatusError:
    return unexplained(f"error dialing backend: {why}")
