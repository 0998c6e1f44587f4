"""nodes/proxy: a GET of a path of the node, such as /metrics, /stats/summary or /configz.

The whole response is read before it is sent to the client, so its size and time are bounded.
Requests that change something or upgrade the connection use other resources, such as pods/exec.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

from moorage.api.core import Node
from moorage.apiserver.errors import DialError
from moorage.apiserver.http.messages import Request, Response, Target
from moorage.apiserver.http.status import StatusError, bad_request, method_not_allowed, unexplained
from moorage.apiserver.node_proxy.connection import (
    PORT,
    SIMULATED,
    ContainerEndpoint,
    address_of,
    dial,
)
from moorage.apiserver.server_context import ServerContext
from moorage.kit.http_head import HEAD_BYTES_MAX, HeadError, read_head

PROXY: Final = "proxy"
ANSWER_S: Final = 30.0
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
PLAIN: Final = "text/plain; charset=utf-8"


class NodePage(NamedTuple):
    """The response of a node."""

    status: int
    type: str
    body: bytes


def is_node_path(target: Target) -> bool:
    """Return whether a request is for a path of a node."""
    return target[:3] == ("", "v1", "nodes") and target.subresource == PROXY


async def answer_node_path(server: ServerContext, target: Target, request: Request) -> Response:
    """Return the response of a node to a GET of one of its paths."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()
    nodes = server.resources.of("", "nodes")
    node: Node = await server.registry.get(nodes, "", target.name)
    _, _, rest = request.uri.partition("/proxy")
    path = rest if rest.startswith("/") else f"/{rest}"
    page = await read_page(server, node, path)
    return Response(page.body, page.status, page.type)


async def read_page(server: ServerContext, node: Node, path: str) -> NodePage:
    """Return the response of a node to a GET, or raise StatusError if the node cannot respond."""
    if SIMULATED in node.metadata.annotations:
        raise bad_request(f'node "{node.metadata.name}" is simulated: nothing runs on it')
    port = node.status.daemon_endpoints.kubelet_endpoint.port or PORT
    place = ContainerEndpoint(address_of(node), port, "", "", "")
    reader = StreamReader(limit=HEAD_BYTES_MAX)
    try:
        transport, protocol = await dial(server.nodes, place, lambda: StreamReaderProtocol(reader))
    except DialError as error:
        raise _unreachable(str(error)) from None
    try:
        async with asyncio.timeout(ANSWER_S):
            writer = StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
            # HTTP/1.0 has no chunks: the body is all that follows.
            lines = (f"GET {_path(path)} HTTP/1.0", f"Host: {place.authority}", "Accept: */*")
            writer.write("\r\n".join((*lines, "", "")).encode("latin-1"))
            await writer.drain()
            return await _page(reader)
    except (OSError, TimeoutError, HeadError) as error:
        raise _unreachable(str(error) or "i/o timeout") from None
    finally:
        transport.abort()


async def _page(reader: StreamReader) -> NodePage:
    head = await read_head(reader)
    if head is None:
        raise HeadError("EOF")
    status = int(head.first[1]) if head.first[1].isdigit() else HTTPStatus.BAD_GATEWAY
    body = bytearray()
    while data := await reader.read(HEAD_BYTES_MAX):
        body += data
        if len(body) > BODY_BYTES_MAX:
            raise HeadError(f"the answer is larger than {BODY_BYTES_MAX} bytes")
    return NodePage(status, head.headers.get("content-type", PLAIN), bytes(body))


def _path(path: str) -> str:
    """Return a path in which characters that a request line cannot contain are quoted."""
    return quote(path, safe="/?&=%:,;@+~!$'()*-._")


def _unreachable(why: str) -> StatusError:
    return unexplained(f"error trying to reach service: {why}")
