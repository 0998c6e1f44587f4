"""TLS with client certificates: how a listener is set up.

A client may show a certificate of our authority, and need not. One that has expired gets as far as
authentication and is refused there, with 401, as in Kubernetes. One of another authority ends the
handshake: Python's TLS cannot let it pass.
"""

from __future__ import annotations

import ssl
from pathlib import Path

NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME


def server_context(folder: Path) -> ssl.SSLContext:
    """Return the context of a listener with the credentials in a folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= NO_CHECK_TIME
    context.set_alpn_protocols(["http/1.1"])
    return context
