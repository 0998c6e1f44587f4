"""TLS as an access asks for it: whom we trust, and the certificate that we show."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from mooring.client.errors import AccessError


class Trust(Protocol):
    """Whom to trust."""

    @property
    def authority(self) -> bytes:
        """The certificates that the server's is checked with; the system's if there are none."""

    @property
    def skips_verification(self) -> bool:
        """Whether any certificate will do."""


def make_context(trust: Trust, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Return a context for connections to a server, or raise AccessError."""
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
            raise AccessError(f"certificate-authority: no certificates in it: {error}") from None
    else:
        context.load_default_certs()
    if certificate or key:
        _show(context, certificate, key)
    return context


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    if not certificate or not key:
        missing = "client-key" if certificate else "client-certificate"
        raise AccessError(f"{missing} is missing: a certificate goes with its key")
    with _private_file(certificate + b"\n" + key) as path:
        try:
            # A password that is wrong is an error; without one there would be a prompt.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            raise AccessError(f"client-certificate and client-key do not go: {error}") from None


@contextmanager
def _private_file(data: bytes) -> Iterator[str]:
    """Keep data in a file that only we can read, for as long as OpenSSL needs to read it."""
    descriptor, path = tempfile.mkstemp(prefix="mooring-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        yield path
    finally:
        os.unlink(path)
