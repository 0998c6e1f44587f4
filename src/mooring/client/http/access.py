"""Where a server is and how to show who we are, as values; and the transport made of them."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from mooring.client.errors import AccessError
from mooring.client.http.connection import Bounds
from mooring.client.http.identity import (
    Identity,
    NoIdentity,
    RenewedIdentity,
    Shown,
    Tokens,
    basic,
    bearer,
    token_from,
    token_identity,
)
from mooring.client.http.pool import HttpTransport, address_of
from mooring.client.http.tls import make_context
from mooring.kit.clock import REAL, Clock

HEADER_LENGTH_MAX = 1024


class Command(Struct, frozen=True):
    """A program that gives credentials (the `exec` of a kubeconfig)."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()  # besides our own
    api_version: str = "client.authentication.k8s.io/v1"
    provides_cluster: bool = False  # it is told which cluster they are for
    install_hint: str = ""


class ActAs(Struct, frozen=True):
    """Somebody else whom the user wants to be taken for."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


class Access(Struct, frozen=True):
    """All that must be known to talk to a server."""

    server: str
    namespace: str = "default"
    authority: bytes = b""  # certificates that the server's is checked with, PEM
    skips_verification: bool = False
    server_name: str = ""  # in the server's certificate, if it is not the host
    certificate: bytes = b""  # ours, PEM
    key: bytes = b""
    token: str = ""
    token_file: str = ""
    user: str = ""
    password: str = ""
    command: Command | None = None
    act_as: ActAs | None = None


def transport_of(
    access: Access,
    *,
    agent: str = "mooring",
    bounds: Bounds = Bounds(),  # noqa: B008  # a value
    clock: Clock = REAL,
    tokens: Tokens | None = None,
) -> HttpTransport:
    """Return the transport to a server, or raise AccessError for what cannot be.

    With `tokens`, they say who we are, and nothing else does.
    """
    address = address_of(access.server)
    shown = (access.certificate, access.key) if tokens is None else ()
    context = make_context(access, *shown) if address.is_secure else None
    if tokens is None:
        identity = _identity(access, context, clock)
    else:
        identity = token_identity(tokens, context, clock)
    return HttpTransport(
        address,
        identity=identity,
        server_name=access.server_name,
        agent=_header_value("user agent", agent),
        bounds=bounds,
    )


def _identity(access: Access, context: ssl.SSLContext | None, clock: Clock) -> Identity:
    headers = _act_as_headers(access.act_as)
    if access.token_file:
        source = token_from(Path(access.token_file), headers, context, clock)
        return RenewedIdentity(source, clock)
    if access.token:
        return NoIdentity(Shown(headers + bearer(access.token), context))
    if access.command is not None:
        from mooring.client.http.commands import credentials_of

        return RenewedIdentity(credentials_of(access, headers, context), clock)
    if access.user:
        return NoIdentity(Shown(headers + basic(access.user, access.password), context))
    return NoIdentity(Shown(headers, context))


def _act_as_headers(act_as: ActAs | None) -> str:
    if act_as is None:
        return ""
    lines = [("Impersonate-User", act_as.user), ("Impersonate-Uid", act_as.uid)]
    lines += [("Impersonate-Group", group) for group in act_as.groups]
    lines += [(f"Impersonate-Extra-{name}", value) for name, value in act_as.extra]
    return "".join(f"{name}: {_header_value(name, value)}\r\n" for name, value in lines if value)


def _header_value(name: str, value: str) -> str:
    if not value.isprintable() or not value.isascii() or len(value) > HEADER_LENGTH_MAX:
        raise AccessError(f"{name}: {value[:64]!r} cannot be sent in a header")
    return value
