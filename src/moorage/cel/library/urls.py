"""Kubernetes' URL functions, and URLs as Go's net/url parses and prints them, with its errors.

    url('https://example.com:80/').getPort()

    URL = [ scheme ":" ] [ "//" [ user "@" ] host ] [ path ] [ "?" query ] [ "#" fragment ]
        | scheme ":" opaque [ "?" query ] [ "#" fragment ]

There are two parsers: parse_request_uri takes only absolute URLs and absolute paths and knows no
fragment, parse_url takes any reference. Escapes such as `%ff` need not be UTF-8; such bytes are
kept as Python's surrogateescape keeps them, one character each.

    # part: a piece of a URL, with its own rule for which bytes need no escape
    # written: as it appears in a URL, with escapes
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Final

from moorage.cel.lang.costs import traverses_first
from moorage.cel.lang.environment import Library, functions_of, members_of
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.types import BOOL, STRING, list_of, map_of, struct
from moorage.cel.library.ip import AddressError, parse_address
from moorage.kit.go_quote import go_quote

URL_TYPE: Final = struct("kubernetes.URL")


def library() -> Library:
    """Return the library `kubernetes.urls`."""
    text, url = (STRING,), (URL_TYPE,)
    texts = {
        "getScheme": ("url_get_scheme", "scheme"),
        "getHost": ("url_get_host", "host"),
        "getHostname": ("url_get_hostname", "hostname"),
        "getPort": ("url_get_port", "port"),
        "getEscapedPath": ("url_get_escaped_path", "path"),
    }
    query = map_of(STRING, list_of(STRING))
    return Library(
        "kubernetes.urls",
        functions=(
            functions_of(
                "url",
                ("string_to_url", text, URL_TYPE, _parse_both),
                costs=traverses_first(keeps_size=True),
            ),
            # Unlike parsing a URL, checking one has no cost of its own in Kubernetes.
            functions_of("isURL", ("is_url_string", text, BOOL, _is_url)),
            *(
                members_of(name, (id_, url, STRING, attrgetter(field)))
                for name, (id_, field) in texts.items()
            ),
            members_of("getQuery", ("url_get_query", url, query, URL.parameters)),
        ),
        python_types={URL: URL_TYPE},
    )


def _parse_both(text: str) -> URL:
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


# --- URLs as Go's net/url reads and writes them, with its errors --------------------------------

QUERY_PARAMETERS_MAX: Final = 10_000

_UNRESERVED: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
_HOST_BYTES: Final = frozenset(_UNRESERVED + b"!$&'()*+,;=:[]<>\"")
# Characters that RFC 3986 allows in a path or fragment, besides those that Go leaves alone.
_VALID_PUNCTUATION: Final = frozenset(b"!$&'()*+,;=:@[]%")
# Only in URLs of these schemes does Go insist on one colon in the host.
_STRICT_SCHEMES: Final = ("http", "https")


class _Part(Enum):
    """A part of a URL."""

    PATH = "path"
    HOST = "host"
    ZONE = "zone"
    USER = "user"
    QUERY = "query"
    FRAGMENT = "fragment"


_PLAIN_BYTES: Final = {
    _Part.PATH: frozenset(_UNRESERVED + b"$&+,/:;=@"),
    _Part.HOST: _HOST_BYTES,
    _Part.USER: frozenset(_UNRESERVED + b"$&+,;="),
    _Part.FRAGMENT: frozenset(_UNRESERVED + b"$&+,/:;=?@!()*"),
}

_has_control_character = re.compile(r"[\x00-\x1f\x7f]").search
_match_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:").match
_is_user = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*").fullmatch
_is_optional_port = re.compile(r"(:[0-9]*)?").fullmatch
_is_escape = re.compile(rb"%[0-9A-Fa-f]{2}").fullmatch
_replace_escapes = re.compile(rb"%(..)", re.DOTALL).sub


class URLError(Exception):
    """A text that is no URL, with Go's text."""


class _PartError(Exception):
    """An error in a part of a URL."""


@dataclass(frozen=True, slots=True, eq=False)
class URL:
    """A parsed URL; user, path and fragment as written, host decoded, query untouched.

    URLs are equal when their texts are.
    """

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""
    has_empty_query: bool = False
    omits_host: bool = False

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        return self._split_host()[0]

    @property
    def port(self) -> str:
        """The port, empty if there is none."""
        return self._split_host()[1]

    def _split_host(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if not colon or not _is_optional_port(colon + port):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def parameters(self) -> dict[str, list[str]]:
        """Return the values of each query parameter, without those that are malformed."""
        found: dict[str, list[str]] = {}
        settings = self.query.split("&")
        if len(settings) > QUERY_PARAMETERS_MAX:
            return found
        for setting in settings:
            if not setting or ";" in setting:
                continue
            key, _, value = setting.partition("=")
            try:
                key, value = _decoded(key, _Part.QUERY), _decoded(value, _Part.QUERY)
            except _PartError:
                continue
            found.setdefault(key, []).append(value)
        return found

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, URL) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        text += self.opaque or self._authority_and_path(follows_scheme=bool(text))
        if self.has_empty_query or self.query:
            text += f"?{self.query}"
        return f"{text}#{self.fragment}" if self.fragment else text

    def _authority_and_path(self, *, follows_scheme: bool) -> str:
        has_authority = bool(self.host) or self.user is not None
        if self.omits_host and not has_authority:
            # The first slash escaped, or the path would be read as a host next time.
            return f"%2F{self.path[1:]}" if self.path.startswith("//") else self.path
        if has_authority or (follows_scheme and self.path):
            user = "" if self.user is None else f"{self.user}@"
            slash = "/" if self.host and self.path and not self.path.startswith("/") else ""
            return f"//{user}{_written(self.host, _Part.HOST)}{slash}{self.path}"
        if not follows_scheme and ":" in self.path.partition("/")[0]:
            return f"./{self.path}"
        return self.path


# --- reading --------------------------------------------------------------------------------------


def parse_request_uri(text: str) -> URL:
    """Return the absolute URL or absolute path in a text, or raise URLError."""
    try:
        return _parse(text, absolute_only=True)
    except _PartError as error:
        raise URLError(f"parse {go_quote(text)}: {error}") from None


def parse_url(text: str) -> URL:
    """Return the URL or reference in a text, or raise URLError."""
    body, _, fragment = text.partition("#")
    try:
        url = _parse(body, absolute_only=False)
    except _PartError as error:
        raise URLError(f"parse {go_quote(body)}: {error}") from None
    try:
        return _with_fragment(url, fragment)
    except _PartError as error:
        raise URLError(f"parse {go_quote(text)}: {error}") from None


def _with_fragment(url: URL, fragment: str) -> URL:
    return replace(url, fragment=_rewritten(fragment, _Part.FRAGMENT))


def _parse(text: str, *, absolute_only: bool) -> URL:
    """Return the URL in a text without fragment.

    1. Split off scheme and query. 2. What then starts without a slash is opaque, or relative.
    3. What starts with two slashes has an authority. 4. The rest is the path.
    """
    if _has_control_character(text):
        raise _PartError("net/url: invalid control character in URL")
    if not text and absolute_only:
        raise _PartError("empty url")
    if text == "*":
        return URL(path="*")
    scheme, rest = _split_scheme(text)
    rest, has_query, query = rest.partition("?")
    url = URL(scheme=scheme, query=query, has_empty_query=bool(has_query) and not query)
    if not rest.startswith("/"):
        if scheme:
            return replace(url, opaque=rest)
        _check_relative(rest, absolute_only=absolute_only)
    if rest.startswith("//") and (scheme or not (absolute_only or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _parse_authority(scheme, authority)
        path = _rewritten(slash + path, _Part.PATH)
        return replace(url, user=user, host=host, path=path)
    return replace(url, path=_rewritten(rest, _Part.PATH), omits_host=bool(scheme))


def _split_scheme(text: str) -> tuple[str, str]:
    found = _match_scheme(text)
    if found is None:
        return "", text
    if found[1] is None:
        raise _PartError("missing protocol scheme")
    return found[1].lower(), text[found.end() :]


def _check_relative(path: str, *, absolute_only: bool) -> None:
    if absolute_only:
        raise _PartError("invalid URI for request")
    if ":" in path.partition("/")[0]:
        raise _PartError("first path segment in URL cannot contain colon")


def _parse_authority(scheme: str, authority: str) -> tuple[str | None, str]:
    """authority = [ name [ ":" password ] "@" ] host; return the user as written, and the host"""
    user, at, host_and_port = authority.rpartition("@")
    host = _parse_host(scheme, host_and_port)
    if not at:
        return None, host
    if not _is_user(user):
        raise _PartError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    written_name = _written(_decoded(name, _Part.USER), _Part.USER)
    return written_name + colon + _written(_decoded(password, _Part.USER), _Part.USER), host


def _parse_host(scheme: str, host: str) -> str:
    """host = name [ ":" port ] | "[" IPv6 [ "%25" zone ] "]" [ ":" port ]; return it decoded"""
    bracket = host.rfind("[")
    if bracket > 0:
        raise _PartError("invalid IP-literal")
    if bracket == 0:
        return _parse_ip_literal(host)
    if ":" in host:
        is_strict = scheme in _STRICT_SCHEMES
        _check_port(host[host.index(":") if is_strict else host.rindex(":") :])
    return _decoded(host, _Part.HOST)


def _parse_ip_literal(host: str) -> str:
    literal, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise _PartError("missing ']' in host")
    _check_port(port)
    address, has_zone, zone = literal.partition("%25")
    decoded = _decoded(address, _Part.HOST) + _decoded(has_zone + zone, _Part.ZONE)
    try:
        is_v4 = parse_address(decoded).is_v4
    except AddressError as error:
        raise _PartError(f"invalid host: {error}") from None
    if is_v4:
        raise _PartError("invalid IP-literal")
    return f"[{decoded}]{port}"


def _check_port(port: str) -> None:
    if not _is_optional_port(port):
        raise _PartError(f"invalid port {go_quote(port)} after host")


# --- escapes --------------------------------------------------------------------------------------


def _rewritten(text: str, part: _Part) -> str:
    """Return the encoded form of a part: unchanged, if it is valid."""
    decoded = _decoded(text, part)
    plain = _PLAIN_BYTES[part] | _VALID_PUNCTUATION
    is_valid = all(byte in plain for byte in _to_bytes(text))
    return text if is_valid else _written(decoded, part)


def _written(text: str, part: _Part) -> str:
    plain = _PLAIN_BYTES[part]
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in _to_bytes(text))


def _decoded(text: str, part: _Part) -> str:
    """Return a part without escapes, or raise _PartError at the first byte that is wrong."""
    data = _to_bytes(text)
    place = 0
    while place < len(data):
        if data[place] == ord("%"):
            escape = data[place : place + 3]
            if not _is_escape(escape) or not _may_be_escaped(escape, part):
                raise _PartError(f"invalid URL escape {go_quote(_from_bytes(escape))}")
            place += 3
        elif part in (_Part.HOST, _Part.ZONE) and not _may_be_in_host(data[place]):
            raise _PartError(f"invalid character {go_quote(chr(data[place]))} in host name")
        else:
            place += 1
    if part is _Part.QUERY:
        data = data.replace(b"+", b" ")
    return _from_bytes(_replace_escapes(lambda found: bytes.fromhex(found[1].decode()), data))


def _may_be_escaped(escape: bytes, part: _Part) -> bool:
    """Hosts escape only non-ASCII bytes, zones only valid bytes of a host, or a blank."""
    value = int(escape[1:], 16)
    if part is _Part.HOST:
        return value >= 0x80 or escape == b"%25"
    if part is _Part.ZONE:
        return value in _HOST_BYTES or value == ord(" ") or escape == b"%25"
    return True


def _may_be_in_host(byte: int) -> bool:
    return byte >= 0x80 or byte in _HOST_BYTES


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _from_bytes(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
