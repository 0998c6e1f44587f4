"""pods/log: what a container said, and says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from urllib.parse import urlencode

from mooring.api.core.podlogs import ALL_STREAMS, PodLogOptions, read_log_options
from mooring.api.errors import DecodeError
from mooring.api.fieldpath import root
from mooring.apiserver.ending import Ending
from mooring.apiserver.exchange import NO_CACHE, Answer, Request, Streaming
from mooring.apiserver.paths import Target
from mooring.apiserver.reaching.dialling import DialError, dial
from mooring.apiserver.reaching.places import Place, find_place
from mooring.apiserver.service import Service
from mooring.apiserver.status import (
    About,
    StatusDetails,
    StatusError,
    bad_request,
    failure,
    internal,
    invalid,
    unexplained,
)
from mooring.client.errors import ClientError
from mooring.client.http.connection import Bounds, Connection, RefusedError, Stream
from mooring.client.transport import Answer as NodeAnswer
from mooring.validation import errors
from mooring.validation.errors import FieldError

PLAIN = "text/plain"
REFUSAL_BYTES_MAX = 50_000
SILENT_S = 365 * 24 * 3600.0  # containers may say nothing for as long as they like
BOUNDS = Bounds(error_bytes_max=REFUSAL_BYTES_MAX, request_s=40.0, idle_stream_s=SILENT_S)
STREAMS = (ALL_STREAMS, "Stderr", "Stdout")


async def read_log(service: Service, target: Target, request: Request) -> Answer | Streaming:
    """Return the log of a container as its node gives it; nothing before there is a node."""
    try:
        options = read_log_options(request.query)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    if found := problems_of(options):
        raise invalid(About("", "PodLogOptions", ""), target.name, found)
    place = await find_place(service, target, options.container)
    if place is None:
        return Answer(b"", HTTPStatus.NO_CONTENT, PLAIN)
    query = urlencode(options.query)
    path = place.path("containerLogs") + (f"?{query}" if query else "")
    connection = await _connect(service, place, path)
    try:
        stream = await connection.open_stream(_head(place, path))
    except RefusedError as refused:
        connection.abort()
        raise _refusal(refused.answer, target) from None
    except ClientError as error:
        raise unexplained(f'Get "https://{place.authority}{path}": {error}') from None
    except BaseException:
        connection.abort()
        raise
    return Streaming(Ending(_parts(stream), connection.abort), PLAIN, NO_CACHE)


async def _connect(service: Service, place: Place, path: str) -> Connection:
    try:
        _, connection = await dial(service.nodes, place, lambda: Connection(BOUNDS, lambda _: None))
    except DialError as error:
        raise unexplained(f'Get "https://{place.authority}{path}": {error}') from None
    return connection


def _head(place: Place, path: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", f"Host: {place.authority}", "Accept: */*", "Connection: close")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _parts(stream: Stream) -> AsyncIterator[bytes]:
    try:
        async for part in stream:
            yield part
    except ClientError as error:
        # The head is sent: a reader could not tell this from the end.
        yield f"\nerror: the log breaks off here: {error}\n".encode()


def _refusal(answer: NodeAnswer, target: Target) -> StatusError:
    """Return what a node does not give, as the server's own words."""
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
    """Return what is wrong with options."""
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
