"""Containers that are asked how they are, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moorage.kit.clock import REAL
from moorage.node.pods.probes import (
    LIVENESS,
    ExecAction,
    HandlerAction,
    HandlerRunner,
    HttpGetAction,
    ProbeResult,
    ProbeResults,
    TcpSocketAction,
    action_of,
    probe_of,
)
from moorage.node.runtime.contract import ContainerId
from tests.node.memoryruntime import MemoryRuntime
from tests.node.world import container, make_pod

ID = ContainerId("u", "c", 0)


def ask(
    make: Callable[[int], HandlerAction], reply: bytes = b"", timeout_s: float = 20.0
) -> ProbeResult:
    """Ask a server that replies this; with nothing to reply it says nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if reply:
            await reader.readline()
            writer.write(reply)
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    async def run() -> ProbeResult:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            handlers = HandlerRunner(MemoryRuntime(REAL), REAL, "127.0.0.1")
            return await handlers.run(ID, make(port), timeout_s)

    return asyncio.run(run())


def page(port: int) -> HttpGetAction:
    return HttpGetAction("", port, "/healthz", False, (("X-A", "b"),))


def test_pages_are_well_from_200_to_399() -> None:
    assert ask(page, b"HTTP/1.1 204 No Content\r\n\r\n").succeeded
    failed = ask(page, b"HTTP/1.1 500 No\r\n\r\n")
    assert failed == (False, "HTTP probe failed with statuscode: 500")
    assert not ask(page, b"nonsense\r\n").succeeded


def test_a_server_that_says_nothing_is_waited_for_only_so_long() -> None:
    assert ask(page, timeout_s=0.05) == (False, "timed out after 0.05s")


def test_connections_are_opened() -> None:
    assert ask(lambda port: TcpSocketAction("", port)).succeeded
    assert not ask(lambda _: TcpSocketAction("", 1)).succeeded


def test_names_and_ports_that_no_network_has_are_failures() -> None:
    assert not ask(lambda _: TcpSocketAction("127.0.0.1", 70_000)).succeeded
    assert not ask(lambda _: TcpSocketAction("a..b", 80)).succeeded
    assert not ask(lambda _: TcpSocketAction("a" * 70, 80)).succeeded
    assert not ask(lambda _: TcpSocketAction("\ud800", 80)).succeeded


def test_line_breaks_never_reach_a_server() -> None:
    bad = ask(lambda port: HttpGetAction("", port, "/\r\nX: y", False), b"HTTP/1.1 200 OK\r\n\r\n")
    assert not bad.succeeded


def test_probes_are_read_with_their_defaults_and_named_ports() -> None:
    ports = [{"name": "web", "containerPort": 8080}]
    probe = {"httpGet": {"port": "web"}, "failureThreshold": 2}
    one = make_pod(container(ports=ports, livenessProbe=probe)).spec.containers[0]
    found = probe_of(one, LIVENESS)
    assert found is not None
    assert found.action == HttpGetAction("", 8080, "/", False)
    assert (found.period_s, found.timeout_s, found.failures) == (10, 1, 2)
    assert action_of(one, {"exec": {"command": ["a", "b"]}}) == ExecAction(("a", "b"))


def test_a_verdict_needs_as_many_answers_as_are_wanted() -> None:
    one = make_pod(container(livenessProbe={"exec": {}, "failureThreshold": 3})).spec.containers[0]
    found = probe_of(one, LIVENESS)
    assert found is not None
    tally = ProbeResults(found, verdict=True)
    changes = [tally.count(each) for each in (False, False, True, False, False, False)]
    assert changes == [False, False, False, False, False, True]
