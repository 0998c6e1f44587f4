"""Connections to nodes, and why there is none, as Go says it."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from asyncio import BaseProtocol, BaseTransport, Transport
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from mooring.apiserver.reaching.contract import NodeIdentity
from mooring.apiserver.reaching.places import Place
from mooring.kit.connections import Manners, prepare

CONNECT_S = 10.0
MANNERS: Final = Manners()

P = TypeVar("P", bound=BaseProtocol)


class DialError(Exception):
    """A node cannot be reached; the text says why."""


async def dial(
    identity: NodeIdentity | None, place: Place, protocol: Callable[[], P]
) -> tuple[Transport, P]:
    """Return a connection to a node, or raise DialError."""
    if identity is None:
        raise DialError("nodes are known by certificates, and this server runs without any")
    try:
        context = identity.context()
    except OSError as error:  # errors of TLS among them
        raise DialError(f"the server's own certificate cannot be read: {error}") from None
    where = f"dial tcp {place.authority}"
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_S):
            transport, made = await loop.create_connection(
                protocol,
                place.host,
                place.port,
                ssl=context,
                server_hostname=place.host,
            )
    except TimeoutError:
        raise DialError(f"{where}: i/o timeout") from None
    except ssl.SSLCertVerificationError as error:
        why = f"tls: failed to verify certificate: x509: {error.verify_message}"
        raise DialError(why) from None
    except ssl.SSLError as error:
        raise DialError(f"tls: {error.reason or error}") from None
    except socket.gaierror as error:
        raise DialError(f"{where}: lookup {place.host}: {error.strerror}") from None
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        raise DialError(f"{where}: connect: {why}") from None
    _keep_alive(transport)
    return transport, made


def _keep_alive(transport: BaseTransport) -> None:
    """Have TCP notice a node that is gone without a word: nothing else bounds a silent log."""
    raw = transport.get_extra_info("socket")
    with suppress(OSError, AttributeError):
        prepare(raw, MANNERS)
