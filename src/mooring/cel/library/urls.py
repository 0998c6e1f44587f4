"""Kubernetes' URL functions: `url('https://example.com:80/').getPort()`."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from mooring.cel.lang.declarations import Function, Library, Overload
from mooring.cel.lang.types import BOOL, STRING, Type, list_of, map_of, struct
from mooring.cel.lang.values import EvalError
from mooring.cel.library.costs import estimates_first, traverses_first
from mooring.cel.library.neturl import URL, URLError, parse_request_uri, parse_url

URL_TYPE: Final = struct("kubernetes.URL")


def library() -> Library:
    """Return the library `kubernetes.urls`."""
    return Library(
        "kubernetes.urls",
        functions=(*_readers(), *_accessors()),
        python_types={URL: URL_TYPE},
    )


def _readers() -> tuple[Function, ...]:
    read = Overload(
        "string_to_url",
        (STRING,),
        URL_TYPE,
        _parse,
        runtime_cost=traverses_first(),
        estimate=estimates_first(keeps_size=True),
    )
    # Unlike reading a URL, asking for one has no cost of its own in Kubernetes.
    ask = Overload("is_url_string", (STRING,), BOOL, _is_url)
    return Function("url", (read,)), Function("isURL", (ask,))


def _accessors() -> tuple[Function, ...]:
    return (
        _accessor("getScheme", "url_get_scheme", STRING, attrgetter("scheme")),
        _accessor("getHost", "url_get_host", STRING, attrgetter("host")),
        _accessor("getHostname", "url_get_hostname", STRING, attrgetter("hostname")),
        _accessor("getPort", "url_get_port", STRING, attrgetter("port")),
        _accessor("getEscapedPath", "url_get_escaped_path", STRING, attrgetter("path")),
        _accessor("getQuery", "url_get_query", map_of(STRING, list_of(STRING)), URL.parameters),
    )


def _accessor(name: str, id_: str, result: Type, evaluate: Callable[..., Any]) -> Function:
    return Function(name, (Overload(id_, (URL_TYPE,), result, evaluate, is_member=True),))


def _parse(text: str) -> URL:
    # Two readers, as in Kubernetes: the first refuses what is relative but reads a fragment as
    # part of the path or query, the second knows fragments.
    try:
        parse_request_uri(text)
        return parse_url(text)
    except URLError as error:
        raise EvalError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except URLError:
        return False
    return True
