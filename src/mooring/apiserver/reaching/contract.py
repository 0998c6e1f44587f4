"""How the server shows nodes who it is, and knows them."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Protocol


class NodeIdentity(Protocol):
    """Makes what a connection to a node needs."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS of a new connection, with the certificates as they are now."""


class CertificateFiles:
    """Certificates in files, read for each connection, for they are renewed at any time."""

    def __init__(self, authority: Path, certificate: Path, key: Path) -> None:
        self._authority = authority
        self._certificate = certificate
        self._key = key

    def context(self) -> ssl.SSLContext:
        """Return the TLS of a new connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_verify_locations(self._authority)
        context.load_cert_chain(self._certificate, self._key)
        return context
