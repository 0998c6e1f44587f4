"""Services with a loopback address: where the node listens, and where connections go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import Service
from moorage.api.discovery import EndpointSlice
from moorage.client.contract import Client
from moorage.node.pods.service_environment import variables_for
from moorage.node.service_proxy import Address, Endpoints, ServiceProxy, forwards

IP = "127.96.0.7"
WAIT_S = 20.0


def service(ip: str = IP, *ports: dict[str, Any], name: str = "web", **spec: Any) -> Service:
    listed = list(ports or [{"port": 80, "targetPort": 8080, "protocol": "TCP"}])
    tree = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"clusterIP": ip, "ports": listed, **spec},
    }
    return decode_tree(tree, Service).value


def endpoints(*hosts: str, port: int = 8080, service: str = "web", **more: Any) -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service}
    listed = [{"addresses": [host], **more} for host in hosts]
    tree = {
        "metadata": {"name": f"{service}-x", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": listed,
        "ports": [{"name": "", "port": port, "protocol": "TCP"}],
    }
    return decode_tree(tree, EndpointSlice).value


def test_ready_endpoints_of_all_slices_are_behind_the_address() -> None:
    slices = [
        endpoints("127.0.0.1"),
        endpoints("127.0.0.1", port=8081),
        endpoints("127.0.0.9", conditions={"ready": False}),
        endpoints("127.0.0.8", service="other"),
    ]
    behind = (Address("127.0.0.1", 8080), Address("127.0.0.1", 8081))
    assert forwards([service()], slices) == {Address(IP, 80): Endpoints(behind)}
    sticky = service(sessionAffinity="ClientIP")
    assert forwards([sticky], slices) == {Address(IP, 80): Endpoints(behind, has_affinity=True)}


@pytest.mark.parametrize(
    ("value", "slices"),
    [
        (service("10.0.0.7"), [endpoints("127.0.0.1")]),  # the network's, not this machine's
        (service("None"), [endpoints("127.0.0.1")]),
        (service(""), [endpoints("127.0.0.1")]),
        (service(), []),
        (service(IP, {"port": 80, "protocol": "UDP"}), [endpoints("127.0.0.1")]),
        (service(IP, {"port": 80, "name": "other"}), [endpoints("127.0.0.1")]),
        # The pod itself has this port of the machine.
        (service(IP, {"port": 8080}), [endpoints("127.0.0.1")]),
    ],
)
def test_where_the_node_does_not_listen(value: Service, slices: list[EndpointSlice]) -> None:
    assert forwards([value], slices) == {}


def test_services_of_a_namespace_are_in_the_environment() -> None:
    listed = [service(), service("None", name="headless"), service("", name="later")]
    found = variables_for("default", listed)
    assert found["WEB_SERVICE_HOST"] == IP
    assert found["WEB_PORT_80_TCP"] == f"tcp://{IP}:80"
    assert not [name for name in found if not name.startswith("WEB_")]
    assert variables_for("elsewhere", listed) == {}


# --- connections ----------------------------------------------------------------------------------


@asynccontextmanager
async def answering(text: bytes) -> AsyncIterator[Address]:
    """Serve: what comes, then a text."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read() + text)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])


async def ask(address: Address, text: bytes) -> bytes:
    reader, writer = await asyncio.wait_for(asyncio.open_connection(*address), WAIT_S)
    writer.write(text)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), WAIT_S)
    finally:
        writer.close()


async def free_address() -> Address:
    server = await asyncio.start_server(lambda *_: None, IP, 0)
    async with server:
        return Address(IP, server.sockets[0].getsockname()[1])


def test_connections_take_turns_and_a_dead_endpoint_is_passed_over() -> None:
    async def run() -> None:
        proxy = ServiceProxy(cast("Client", None), random=lambda: 0.5)
        place = await free_address()
        async with answering(b" one") as first, answering(b" two") as second:
            await proxy.use({place: Endpoints((first, second))})
            found = [await ask(place, b"hello") for _ in range(4)]
            assert found == [b"hello one", b"hello two"] * 2
            await proxy.use({place: Endpoints((first, second), has_affinity=True)})
            assert len({await ask(place, b"") for _ in range(3)}) == 1
            dead = Address("127.0.0.1", 1)
            await proxy.use({place: Endpoints((dead, second))})
            assert {await ask(place, b"") for _ in range(2)} == {b" two"}
            await proxy.use({})
            with pytest.raises(ConnectionRefusedError):
                await ask(place, b"")

    asyncio.run(run())


def test_an_address_that_is_taken_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        proxy = ServiceProxy(cast("Client", None), random=lambda: 0.5)
        async with answering(b"") as taken:
            for _ in range(2):
                await proxy.use({taken: Endpoints((taken,))})
            await proxy.use({})

    asyncio.run(run())
    assert len(caplog.records) == 1
    assert "a service cannot be reached at its address" in caplog.text
