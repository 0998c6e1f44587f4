"""Credentials: headers of requests (tokens) and TLS contexts (certificates), renewed in time."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from moorage.client.errors import AccessError
from moorage.kit.clock import REAL, Clock

TOKEN_BYTES_MAX = 64 * 1024
TOKEN_FILE_S = 60.0  # how long a token from a file is used; the kubelet replaces a pod's
RENEW_BEFORE = timedelta(seconds=30)


class RequestAuth(NamedTuple):
    """The headers of requests and the TLS context of connections."""

    headers: str = ""  # complete lines
    context: ssl.SSLContext | None = None


class Credentials(Protocol):
    """Provides the authentication of requests."""

    @property
    def current(self) -> RequestAuth | None:
        """The valid authentication; None if it must be fetched first."""

    async def fetch(self) -> RequestAuth:
        """Return the valid authentication, renewed if necessary."""

    async def renew(self) -> bool:
        """Discard rejected credentials; return False if new ones would be the same."""


class StaticCredentials:
    """Credentials that never change, or none."""

    def __init__(self, auth: RequestAuth = RequestAuth()) -> None:  # noqa: B008  # a value
        self._auth = auth

    @property
    def current(self) -> RequestAuth | None:
        """The authentication."""
        return self._auth

    async def fetch(self) -> RequestAuth:
        """Return the authentication."""
        return self._auth

    async def renew(self) -> bool:
        """Return False: there is no other."""
        return False


class ExpiringAuth(NamedTuple):
    """Authentication that expires."""

    auth: RequestAuth
    until: datetime | None = None


class RenewedCredentials:
    """Credentials from a source, used until they expire or the server rejects them."""

    def __init__(self, source: Callable[[], Awaitable[ExpiringAuth]], clock: Clock = REAL) -> None:
        self._source = source
        self._clock = clock
        self._fetched: ExpiringAuth | None = None
        self._fetching = asyncio.Lock()

    @property
    def current(self) -> RequestAuth | None:
        """The authentication, unless it has expired."""
        fetched = self._fetched
        if fetched is None:
            return None
        if fetched.until is not None and self._clock.now() >= fetched.until:
            return None
        return fetched.auth

    async def fetch(self) -> RequestAuth:
        """Return the valid authentication; of concurrent callers, one fetches it."""
        async with self._fetching:
            auth = self.current
            if auth is None:
                self._fetched = await self._source()
                auth = self._fetched.auth
            return auth

    async def renew(self) -> bool:
        """Discard the authentication."""
        self._fetched = None
        return True


class Token(NamedTuple):
    """A token, and when to request the next one."""

    text: str
    until: datetime | None = None


Tokens = Callable[[], Awaitable[Token]]  # requests a token


def token_credentials(
    tokens: Tokens, context: ssl.SSLContext | None = None, clock: Clock = REAL
) -> RenewedCredentials:
    """Return credentials whose tokens are requested when needed."""

    async def ask() -> ExpiringAuth:
        token = await tokens()
        return ExpiringAuth(RequestAuth(bearer(token.text), context), token.until)

    return RenewedCredentials(ask, clock)


def bearer(token: str) -> str:
    """Return the header with a token, or raise AccessError for an invalid one."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError("the token is empty or has invalid characters")
    return f"Authorization: Bearer {token}\r\n"


def basic(user: str, password: str) -> str:
    """Return the header with a user name and a password."""
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Authorization: Basic {text}\r\n"


def token_file_source(
    path: Path, headers: str, context: ssl.SSLContext | None, clock: Clock
) -> Callable[[], Awaitable[ExpiringAuth]]:
    """Return a source that reads a token from a file."""

    async def read() -> ExpiringAuth:
        try:
            with path.open(encoding="ascii") as file:
                token = file.read(TOKEN_BYTES_MAX)
        except (OSError, ValueError) as error:
            raise AccessError(f"token file {path}: {error}") from None
        until = clock.now() + timedelta(seconds=TOKEN_FILE_S)
        return ExpiringAuth(RequestAuth(headers + bearer(token), context), until)

    return read


# --- TLS ------------------------------------------------------------------------------------------


class ServerTrust(Protocol):
    """How to verify a server."""

    @property
    def authority(self) -> bytes:
        """The CA certificates; empty for the system's."""

    @property
    def skips_verification(self) -> bool:
        """Whether to accept any certificate."""


def make_context(trust: ServerTrust, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Return a TLS context for connections to a server, or raise AccessError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if trust.skips_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif trust.authority:
        try:
            context.load_verify_locations(cadata=trust.authority.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(f"certificate-authority: no valid certificates: {error}") from None
    else:
        context.load_default_certs()
    if certificate or key:
        _load_certificate(context, certificate, key)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    if not certificate or not key:
        missing = "client-key" if certificate else "client-certificate"
        raise AccessError(f"{missing} is missing: a certificate needs its key")
    with _private_file(certificate + b"\n" + key) as path:
        try:
            # Without a password OpenSSL would prompt; a wrong one is an error.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(f"client-certificate and client-key do not work: {error}") from None


@contextmanager
def _private_file(data: bytes) -> Iterator[str]:
    """Keep data in a private file while OpenSSL reads it: in memory, which no full disk refuses."""
    descriptor, path, is_on_disk = _private_place()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            yield path
    except OSError as error:
        raise AccessError(f"{path}: {error.strerror}") from None
    finally:
        if is_on_disk:
            os.unlink(path)


def _private_place() -> tuple[int, str, bool]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("moorage")
        path = f"/proc/self/fd/{descriptor}"
        if os.path.exists(path):
            return descriptor, path, False
        os.close(descriptor)
    return *tempfile.mkstemp(prefix="moorage-"), True
