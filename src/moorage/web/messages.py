"""Requests and responses of the page: security headers, origin checks, JSON and errors."""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Container, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from moorage.apiserver.http.messages import JSON, Headers, Request, Response
from moorage.web.errors import BadQuestionError, ForbiddenError, PageError, TooLargeError
from moorage.web.static_files import StaticFile

BODY_BYTES_MAX: Final = 1024 * 1024
PACKED_FROM_BYTES: Final = 1024
GZIP_LEVEL: Final = 6
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE: Final[Headers] = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
NO_STORE: Final[Headers] = (("Cache-Control", "no-store"), *SAFE)
PACKED: Final[Headers] = (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))


class Body(NamedTuple):
    """A JSON body, plain and compressed."""

    plain: bytes
    packed: bytes

    @staticmethod
    def plain_of(tree: Any) -> bytes:
        """Return a tree as JSON text."""
        return msgspec.json.encode(tree)

    @classmethod
    def of(cls, tree: Any) -> Body:
        """Return a tree as a body."""
        plain = msgspec.json.encode(tree)
        return cls(plain, gzip.compress(plain, GZIP_LEVEL, mtime=0))


def check_origin(request: Request, hosts: Container[str]) -> None:
    """Raise ForbiddenError for a request to another host name, or from another site.

    If any host name were accepted, a site could point its own name to this machine (DNS rebinding),
    and its pages would have the same origin as ours.
    """
    host = request.headers.get("host", "")
    if host_name(host) not in hosts:
        text = "The page is not available at this host. Open the address that `moor ui` prints."
        raise ForbiddenError(text, "bad-host")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise ForbiddenError("The request comes from another site.", "bad-origin")
    if request.headers.get("sec-fetch-site", "none") == "cross-site" and request.method != "GET":
        raise ForbiddenError("The request comes from another site.", "bad-origin")


def host_name(host: str) -> str:
    """Return the host of a Host header, without the port."""
    if host.startswith("["):
        return host[: host.find("]") + 1].lower()
    return host.partition(":")[0].lower()


def check_post(request: Request) -> Mapping[str, Any]:
    """Return the body of a question, or raise PageError if another site could have sent it."""
    if request.headers.get("x-moor-ui") != "1":
        raise BadQuestionError("The header X-Moor-UI: 1 is missing.")
    if len(request.body) > BODY_BYTES_MAX:
        raise TooLargeError(f"The body has more than {BODY_BYTES_MAX:,} bytes.")
    try:
        tree = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadQuestionError(f"The body is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise BadQuestionError("The body must be an object.")
    return tree


def json_response(plain: bytes, packed: bytes | None, request: Request) -> Response:
    """Return data, compressed if there is such a form and the client accepts it."""
    if packed is not None and accepts_gzip(request) and len(plain) >= PACKED_FROM_BYTES:
        return Response(packed, 200, JSON, (*NO_STORE, *PACKED))
    return Response(plain, 200, JSON, NO_STORE)


def error_response(error: PageError) -> Response:
    """Return an error as JSON."""
    body = msgspec.json.encode({"error": error.text, "code": error.reason})
    return Response(body, error.status, JSON, NO_STORE)


def file_response(file: StaticFile, request: Request) -> Response:
    """Return a file of the page, or 304 if the client has it."""
    headers: Headers = (("ETag", file.etag), ("Cache-Control", "no-cache"), *SAFE)
    tags = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
    if file.etag in tags:
        return Response(b"", 304, file.content_type, headers)
    if accepts_gzip(request):
        return Response(file.packed, 200, file.content_type, (*headers, *PACKED))
    return Response(file.body, 200, file.content_type, headers)


def message_page(title: str, text: str, status: int) -> Response:
    """Return a page with a message, without script; what is between ` in its text is code."""
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
    body = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f'<title>{html.escape(title)}</title><link rel="stylesheet" href="/ui/static/app.css">'
        f'</head><body><main class="state whole"><h1>{html.escape(title)}</h1><p>{shown}</p></main>'
        "</body></html>\n"
    )
    return Response(body.encode(), status, "text/html; charset=utf-8", NO_STORE)


def accepts_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip."""
    return "gzip" in request.headers.get("accept-encoding", "")
