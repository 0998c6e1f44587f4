"""Services on this machine: connections to a loopback ClusterIP go to the pods behind it.

    client ── 127.96.0.7:80 ── proxy ─┬─ 127.0.0.1:8080
                                      └─ 127.0.0.1:8081

Every address in 127.0.0.0/8 is this machine's, so a ClusterIP in it needs no rules in the kernel: a
small proxy listens there while the service has ready endpoints. Other ranges are left alone.

Pods have the machine's network. Where a pod on this machine has the very port of its service, the
proxy does not listen: it would take the port from a server that listens on all addresses, and such
a server answers at the ClusterIP by itself. `forwards` decides this (pure); `ServiceProxy` acts.

# forward: an address where the proxy listens, and the endpoints behind it
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Final, NamedTuple

from moorage.api.core import Service
from moorage.api.core.service import ServicePort
from moorage.api.discovery import SERVICE_NAME_LABEL, EndpointSlice
from moorage.client.contract import Client
from moorage.client.informer_factory import InformerFactory
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.kit.clock import REAL, Clock

LOG = logging.getLogger(__name__)

PLACE: Final = "services of this node"
FORWARDS_MAX: Final = 1000
CONNECTIONS_MAX: Final = 1000
CONNECT_S: Final = 5.0
CHUNK_BYTES: Final = 64 * 1024
PAUSE_S: Final = 0.05  # between two looks, however many events
AGAIN_S: Final = 10.0  # after an address could not be listened at
TCP: Final = "TCP"
CLIENT_IP: Final = "ClientIP"


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int


class Endpoints(NamedTuple):
    """Who answers at an address."""

    addresses: tuple[Address, ...]
    has_affinity: bool = False  # one client always gets the same


Forwards = Mapping[Address, Endpoints]


def forwards(services: Iterable[Service], slices: Iterable[EndpointSlice]) -> Forwards:
    """Return where to listen, and the ready endpoints behind each address."""
    by_service: dict[tuple[str, str], list[EndpointSlice]] = {}
    for each in slices:
        name = each.metadata.labels.get(SERVICE_NAME_LABEL, "")
        by_service.setdefault((each.metadata.namespace, name), []).append(each)
    found: dict[Address, Endpoints] = {}
    for service in sorted(services, key=lambda each: each.metadata.uid):
        metadata, spec = service.metadata, service.spec
        if not _is_loopback(spec.cluster_ip):
            continue
        for port in spec.ports:
            listed = by_service.get((metadata.namespace, metadata.name), ())
            behind = tuple(sorted(set(_endpoints(port, listed))))
            address = Address(spec.cluster_ip, port.port)
            is_taken = any(_is_loopback(each.host) and each.port == port.port for each in behind)
            if behind and not is_taken and len(found) < FORWARDS_MAX:
                found[address] = Endpoints(behind, spec.session_affinity == CLIENT_IP)
    return found


def _endpoints(port: ServicePort, slices: Iterable[EndpointSlice]) -> Iterator[Address]:
    """Yield the ready endpoints of a port; only TCP is forwarded."""
    if (port.protocol or TCP) != TCP:
        return
    for each in slices:
        for own in each.ports:
            if (own.name or "") != port.name or (own.protocol or TCP) != TCP or not own.port:
                continue
            for endpoint in each.endpoints:
                if endpoint.conditions.ready is not False:
                    yield from (Address(host, own.port) for host in endpoint.addresses[:1])


def _is_loopback(text: str) -> bool:
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return False


class ServiceProxy:
    """Listens at the addresses of services, and forwards connections."""

    def __init__(self, client: Client, *, random: Callable[[], float], clock: Clock = REAL) -> None:
        self._informers = InformerFactory(client, random=random, clock=clock)
        self._clock = clock
        self._servers: dict[Address, asyncio.Server] = {}
        self._forwards: Forwards = {}
        self._turns: dict[Address, int] = {}
        self._warned: set[str] = set()
        self._connections = 0
        self._is_due = asyncio.Event()
        for struct in (Service, EndpointSlice):
            informer = self._informers.informer_for(struct, optional=True)
            informer.add_event_handler(lambda *_: self._is_due.set())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Forward connections during a block; what fails begins again."""
        task = asyncio.create_task(keep_running(PLACE, self.run, clock=self._clock))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> None:
        """Follow services until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._informers.run())
                tasks.create_task(self._follow())
        finally:
            for address in tuple(self._servers):
                await self._close(address)

    async def _follow(self) -> None:
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            objects = self._informers.objects
            with FAULTS.guard(PLACE, "the proxy"):
                await self.use(forwards(objects.list(Service), objects.list(EndpointSlice)))
            await self._clock.sleep(PAUSE_S)

    async def use(self, wanted: Forwards) -> None:
        """Listen at these addresses, and at no others."""
        self._forwards = wanted
        for address in [each for each in self._servers if each not in wanted]:
            await self._close(address)
        for address in wanted:
            if address not in self._servers:
                await self._open(address)

    async def _open(self, address: Address) -> None:
        async def serve(reader: StreamReader, writer: StreamWriter) -> None:
            await self._serve(address, reader, writer)

        try:
            self._servers[address] = await asyncio.start_server(serve, *address)
        except OSError as error:
            text = f"{address.host}:{address.port}: {error.strerror or error}"
            if text not in self._warned and len(self._warned) < FORWARDS_MAX:
                self._warned.add(text)
                LOG.warning("a service cannot be reached at its address: %s", text)
            self._clock.call_later(AGAIN_S, self._is_due.set)

    async def _close(self, address: Address) -> None:
        server = self._servers.pop(address)
        server.close()
        self._turns.pop(address, None)

    # --- connections ----------------------------------------------------------------------------

    async def _serve(self, address: Address, reader: StreamReader, writer: StreamWriter) -> None:
        if self._connections >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._connections += 1
        try:
            await self._forward(address, reader, writer)
        except OSError:
            writer.transport.abort()
        except Exception as error:
            FAULTS.note(PLACE, str(address), error, "ends a connection")
        finally:
            self._connections -= 1
            writer.close()

    async def _forward(self, address: Address, reader: StreamReader, writer: StreamWriter) -> None:
        client = str((writer.get_extra_info("peername") or ("",))[0])
        for target in self._targets(address, client):
            try:
                async with asyncio.timeout(CONNECT_S):
                    behind, onward = await asyncio.open_connection(*target)
                break
            except OSError:
                continue
        else:
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_copy(reader, onward))
                tasks.create_task(_copy(behind, writer))
        except* OSError:
            writer.transport.abort()
        finally:
            onward.close()

    def _targets(self, address: Address, client: str) -> tuple[Address, ...]:
        """Return the endpoints of an address, the one whose turn it is first."""
        found = self._forwards.get(address)
        if found is None:
            return ()
        listed = found.addresses
        if found.has_affinity:
            turn = sum(client.encode()) % len(listed)
        else:
            turn = self._turns[address] = (self._turns.get(address, -1) + 1) % len(listed)
        return (*listed[turn:], *listed[:turn])


async def _copy(source: StreamReader, target: StreamWriter) -> None:
    """Copy bytes until their end, and pass the end on."""
    while data := await source.read(CHUNK_BYTES):
        target.write(data)
        await target.drain()
    with suppress(OSError, RuntimeError):
        target.write_eof()
