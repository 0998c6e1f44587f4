"""Connections to nodes: which container, where its node listens, and the server's certificate.

Errors have Kubernetes' messages, those of connections Go's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from asyncio import BaseProtocol, BaseTransport, Transport
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from moorage.api.core import Node, Pod
from moorage.apiserver.errors import DialError
from moorage.apiserver.http.messages import Target
from moorage.apiserver.http.status import bad_request, unexplained
from moorage.kit.connections import ConnectionLimits, prepare

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext


class NodeIdentity(Protocol):
    """Makes TLS contexts for connections to nodes."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a new connection, with current certificates."""


class CertificateFiles:
    """Certificates in files, read for each connection because they may be renewed."""

    def __init__(self, authority: Path, certificate: Path, key: Path) -> None:
        self._authority = authority
        self._certificate = certificate
        self._key = key

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a new connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_verify_locations(self._authority)
        context.load_cert_chain(self._certificate, self._key)
        return context


# --- endpoints ------------------------------------------------------------------------------------

SIMULATED = "moorage.dev/simulated"  # an annotation of nodes on which nothing runs
PORT = 10250  # the default of nodes
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")


class ContainerEndpoint(NamedTuple):
    """A container or a whole pod, and the address of its node."""

    host: str
    port: int
    namespace: str
    pod: str
    container: str  # empty: the pod

    @property
    def authority(self) -> str:
        """Host and port, as in URLs."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def path(self, endpoint: str) -> str:
        """Return the path of an endpoint of the node."""
        parts = filter(None, (endpoint, self.namespace, self.pod, self.container))
        return "".join(f"/{quote(part, safe='')}" for part in parts)


async def find_endpoint(
    server: ServerContext, target: Target, container: str | None
) -> ContainerEndpoint | None:
    """Return the endpoint of a container, or of a pod; None if the pod has no node yet."""
    pods, nodes = server.resources.of("", "pods"), server.resources.of("", "nodes")
    pod: Pod = await server.registry.get(pods, target.namespace, target.name)
    name = "" if container is None else chosen_container(pod, container)
    if not pod.spec.node_name:
        return None
    node: Node = await server.registry.get(nodes, "", pod.spec.node_name)
    if SIMULATED in node.metadata.annotations:
        text = f'node "{node.metadata.name}" is simulated: nothing runs on it'
        raise bad_request(f'{text}, so pod "{target.name}" says nothing and takes no commands')
    port = node.status.daemon_endpoints.kubelet_endpoint.port or PORT
    return ContainerEndpoint(address_of(node), port, target.namespace, target.name, name)


def chosen_container(pod: Pod, wanted: str) -> str:
    """Return the named container, or the only one, or raise 400."""
    spec, name = pod.spec, pod.metadata.name
    listed = (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)
    if wanted:
        if all(each.name != wanted for each in listed):
            raise bad_request(f"container {wanted[:253]} is not valid for pod {name}")
        return wanted
    if len(spec.containers) == 1:
        return spec.containers[0].name
    text = f"a container name must be specified for pod {name}"
    if spec.containers:
        text += f", choose one of: [{' '.join(each.name for each in listed)}]"
    raise bad_request(text)


def address_of(node: Node) -> str:
    """Return the preferred address of a node."""
    addresses = node.status.addresses
    for wanted in ADDRESS_TYPES:
        for address in addresses:
            if address.type == wanted and address.address:
                return address.address
    known = " ".join(f"{{{each.type} {each.address}}}" for each in addresses)
    raise unexplained(f"no preferred addresses found; known addresses: [{known}]")


# --- connections ----------------------------------------------------------------------------------

CONNECT_S = 10.0
MANNERS: Final = ConnectionLimits()

P = TypeVar("P", bound=BaseProtocol)


async def dial(
    identity: NodeIdentity | None, place: ContainerEndpoint, protocol: Callable[[], P]
) -> tuple[Transport, P]:
    """Return a connection to a node, or raise DialError."""
    if identity is None:
        raise DialError("nodes are known by certificates, and this server runs without any")
    try:
        context = identity.context()
    except OSError as error:  # TLS errors too
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
    except (ValueError, OverflowError):  # names and ports that no network has
        raise DialError(f"{where}: no such host or port") from None
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        raise DialError(f"{where}: connect: {why}") from None
    _keep_alive(transport)
    return transport, made


def _keep_alive(transport: BaseTransport) -> None:
    """Enable TCP keepalive: nothing else notices a dead node while a log is silent."""
    raw = transport.get_extra_info("socket")
    with suppress(OSError, AttributeError):
        prepare(raw, MANNERS)
