"""pods/log, pods/exec, pods/attach and pods/portforward, which the node of the pod serves.

    client ── upgrade ──► server ── the same, with our certificate ──► node
           ◄─────────── bytes both ways, whatever the protocol ───────►

The response of the node to an upgrade is the response to the client.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

from moorage.api.core.pod_log_options import ALL_STREAMS, PodLogOptions, read_log_options
from moorage.api.errors import DecodeError
from moorage.api.field_path import root
from moorage.apiserver.errors import DialError
from moorage.apiserver.http.messages import (
    NO_CACHE,
    ClosingStream,
    Request,
    Response,
    StreamingResponse,
    Target,
)
from moorage.apiserver.http.status import (
    About,
    StatusDetails,
    StatusError,
    bad_request,
    failure,
    internal,
    invalid,
    unexplained,
)
from moorage.apiserver.node_proxy.connection import ContainerEndpoint, dial, find_endpoint
from moorage.apiserver.server_context import ServerContext
from moorage.client.contract import Response as NodeAnswer
from moorage.client.errors import ClientError
from moorage.client.http.connection import (
    ClientBounds,
    Connection,
    ResponseStream,
    StreamRefusedError,
)
from moorage.kit.http_head import HEAD_BYTES_MAX, Head, HeadError, read_head
from moorage.validation import errors
from moorage.validation.errors import FieldError

PLAIN = "text/plain"
REFUSAL_BYTES_MAX = 50_000
SILENT_S = 365 * 24 * 3600.0  # containers may be silent for long
BOUNDS = ClientBounds(error_bytes_max=REFUSAL_BYTES_MAX, request_s=40.0, idle_stream_s=SILENT_S)
STREAMS = (ALL_STREAMS, "Stderr", "Stdout")


async def read_log(
    server: ServerContext, target: Target, request: Request
) -> Response | StreamingResponse:
    """Return the log of a container from its node; 204 if the pod has no node yet."""
    try:
        options = read_log_options(request.query)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    if found := problems_of(options):
        raise invalid(About("", "PodLogOptions", ""), target.name, found)
    place = await find_endpoint(server, target, options.container)
    if place is None:
        return Response(b"", HTTPStatus.NO_CONTENT, PLAIN)
    query = urlencode(options.query)
    path = place.path("containerLogs") + (f"?{query}" if query else "")
    connection = await _connect(server, place, path)
    try:
        stream = await connection.open_stream(_head(place, path))
    except StreamRefusedError as refused:
        connection.abort()
        raise _refusal(refused.answer, target) from None
    except ClientError as error:
        raise unexplained(f'Get "https://{place.authority}{path}": {error}') from None
    except BaseException:
        connection.abort()
        raise
    return StreamingResponse(ClosingStream(_parts(stream), connection.abort), PLAIN, NO_CACHE)


async def _connect(server: ServerContext, place: ContainerEndpoint, path: str) -> Connection:
    try:
        _, connection = await dial(server.nodes, place, lambda: Connection(BOUNDS, lambda _: None))
    except DialError as error:
        raise unexplained(f'Get "https://{place.authority}{path}": {error}') from None
    return connection


def _head(place: ContainerEndpoint, path: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", f"Host: {place.authority}", "Accept: */*", "Connection: close")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _parts(stream: ResponseStream) -> AsyncIterator[bytes]:
    try:
        async for part in stream:
            yield part
    except ClientError as error:
        # The head is sent, so the stream itself must say that it broke off.
        yield f"\nerror: the log breaks off here: {error}\n".encode()


def _refusal(answer: NodeAnswer, target: Target) -> StatusError:
    """Return the Status for an error of a node."""
    text = answer.body.decode(errors="replace")
    match answer.status:
        case HTTPStatus.BAD_REQUEST:
            return bad_request(text)
        case HTTPStatus.INTERNAL_SERVER_ERROR:
            return internal(text)
        case HTTPStatus.NOT_FOUND:
            details = StatusDetails(name=target.name, kind="pods/log")
            words = "the server could not find the requested resource"
            message = f"{words} ( pods/log {target.name})"
            return failure(HTTPStatus.NOT_FOUND, "NotFound", message, details)
    return internal(f"the node answered {answer.status}: {text}")


def problems_of(options: PodLogOptions) -> list[FieldError]:
    """Return the errors of log options."""
    found: list[FieldError] = []
    tail, size, since = options.tail_lines, options.limit_bytes, options.since_seconds
    if tail is not None and tail < 0:
        text = "must be greater than or equal to 0"
        found.append(errors.invalid(root("tailLines"), tail, text))
    if size is not None and size < 1:
        found.append(errors.invalid(root("limitBytes"), size, "must be greater than 0"))
    if since is not None and options.since_time is not None:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        found.append(errors.forbidden(root(""), text))
    elif since is not None and since < 1:
        found.append(errors.invalid(root("sinceSeconds"), since, "must be greater than 0"))
    if options.stream not in STREAMS:
        found.append(errors.not_supported(root("stream"), options.stream, STREAMS))
    elif options.stream != ALL_STREAMS and tail is not None:
        text = "`tailLines` and specific `stream` are mutually exclusive for now"
        found.append(errors.forbidden(root(""), text))
    return found


# --- exec and attach ------------------------------------------------------------------------------

ANSWER_S = 30.0
READ_BYTES = 64 * 1024
REFUSAL_BYTES_MAX_TUNNEL = 64 * 1024
QUERY_FIELDS_MAX = 1000
STALLED_S = 60.0

# Kubelet's names of the streams.
_FLAGS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_PASSED = (
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
    "x-stream-protocol-version",
)


async def open_tunnel(
    server: ServerContext, target: Target, request: Request
) -> Response | StreamingResponse:
    """Return a connection to a container, or the error response of its node."""
    fields = query_fields(request)
    is_ports = target.subresource == PORT_FORWARD
    container = None if is_ports else dict(reversed(fields)).get("container", "")
    place = await find_endpoint(server, target, container)
    if place is None:
        raise bad_request(f"pod {target.name} does not have a host assigned")
    head = Head(("", "", ""), request.headers)
    if not head.upgrade:
        raise bad_request("Upgrade request required")
    reader, writer = await _dial(server, place)
    try:
        async with asyncio.timeout(ANSWER_S):
            endpoint = "portForward" if is_ports else target.subresource
            writer.write(_request(place, endpoint, [] if is_ports else fields, request))
            await writer.drain()
            return await _answered(reader, writer)
    except (OSError, TimeoutError, HeadError) as error:
        writer.transport.abort()
        raise _unreachable(str(error) or "i/o timeout") from None
    except BaseException:
        writer.transport.abort()
        raise


async def _dial(
    server: ServerContext, place: ContainerEndpoint
) -> tuple[StreamReader, StreamWriter]:
    reader = StreamReader(limit=HEAD_BYTES_MAX)
    try:
        transport, protocol = await dial(server.nodes, place, lambda: StreamReaderProtocol(reader))
    except DialError as error:
        raise _unreachable(str(error)) from None
    return reader, StreamWriter(transport, protocol, reader, asyncio.get_running_loop())


async def _answered(reader: StreamReader, writer: StreamWriter) -> Response | StreamingResponse:
    head = await read_head(reader)
    if head is None:
        raise HeadError("EOF")
    code = int(head.first[1]) if head.first[1].isdigit() else 0
    if code == HTTPStatus.SWITCHING_PROTOCOLS:
        parts = ClosingStream(_parts_tunnel(head.raw, reader), writer.transport.abort)
        return StreamingResponse(parts, upstream=_Upstream(writer).take)
    if not 400 <= code < 600:
        raise unexplained(f"invalid upgrade response: status code {code}")
    body = await _refusal_tunnel(head, reader)
    writer.transport.abort()
    return Response(body, code, head.headers.get("content-type", "text/plain; charset=utf-8"))


async def _refusal_tunnel(head: Head, reader: StreamReader) -> bytes:
    length = head.headers.get("content-length", "")
    most = (
        min(int(length[:9]), REFUSAL_BYTES_MAX_TUNNEL)
        if length.isdigit()
        else REFUSAL_BYTES_MAX_TUNNEL
    )
    try:
        return await reader.readexactly(most)
    except asyncio.IncompleteReadError as error:
        return error.partial


class _Upstream:
    """Sends data of the client to the node."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    async def take(self, data: bytes) -> None:
        """Send data, or raise OSError if the node does not take it."""
        self._writer.write(data)
        async with asyncio.timeout(STALLED_S):
            await self._writer.drain()


async def _parts_tunnel(head: bytes, reader: StreamReader) -> AsyncIterator[bytes]:
    """Yield the node's data."""
    yield head
    with suppress(OSError):
        while data := await reader.read(READ_BYTES):
            yield data


def query_fields(request: Request) -> list[tuple[str, str]]:
    """Return all fields of a query; a command has one field for each argument."""
    _, _, query = request.uri.partition("?")
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise bad_request(f"the query has more than {QUERY_FIELDS_MAX} fields") from None


def _request(
    place: ContainerEndpoint, endpoint: str, fields: list[tuple[str, str]], request: Request
) -> bytes:
    flags = [
        (_FLAGS[name], "1")
        for name, value in dict(reversed(fields)).items()
        if name in _FLAGS and value.lower() not in ("0", "false")
    ]
    words = [(name, value) for name, value in fields if name == "command"]
    query = urlencode(sorted(flags) + words)
    passed = [(name, request.headers[name]) for name in _PASSED if name in request.headers]
    lines = (
        f"{request.method} {place.path(endpoint)}?{query} HTTP/1.1",
        f"Host: {place.authority}",
        "Connection: Upgrade",
        f"Upgrade: {request.headers['upgrade']}",
        *([] if request.method == "GET" else ["Content-Length: 0"]),
        *(f"{name}: {value}" for name, value in passed),
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _unreachable(why: str) -> StatusError:
    return unexplained(f"error dialing backend: {why}")


# --- entry points ---------------------------------------------------------------------------------

LOG = "log"
PORT_FORWARD = "portforward"
CONVERSATIONS = ("attach", "exec", PORT_FORWARD)


def is_answered_by_node(target: Target) -> bool:
    """Return whether the node of the pod answers a request."""
    is_pod = (target.group, target.resource) == ("", "pods")
    return is_pod and target.subresource in (LOG, *CONVERSATIONS)


def is_tunnel(target: Target | None) -> bool:
    """Return whether a request becomes a connection to a container."""
    return target is not None and is_answered_by_node(target) and target.subresource != LOG


async def answer_by_node(
    server: ServerContext, target: Target, request: Request
) -> Response | StreamingResponse:
    """Return the response of the node of a pod, or raise its Status."""
    if target.subresource == LOG:
        return await read_log(server, target, request)
    return await open_tunnel(server, target, request)
