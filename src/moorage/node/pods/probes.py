"""Probes and lifecycle hooks of containers: how they are specified, run and counted.

A handler is an exec, HTTP or TCP action, or a sleep. A probe repeats its handler, and its result
changes after enough successes or failures in a row, as the thresholds say.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from moorage.api.core import Container
from moorage.kit.clock import Clock
from moorage.node.runtime.contract import ContainerId, ExecSession, Runtime, RuntimeRefusedError

STARTUP, LIVENESS, READINESS = "Startup", "Liveness", "Readiness"
TEXT_MAX = 1024


class ExecAction(NamedTuple):
    """Run a command; exit code 0 is success."""

    command: tuple[str, ...]


class HttpGetAction(NamedTuple):
    """Get a page; a status of 200 to 399 is success."""

    host: str  # empty: the pod
    port: int
    path: str
    is_secure: bool
    headers: tuple[tuple[str, str], ...] = ()


class TcpSocketAction(NamedTuple):
    """Open a connection."""

    host: str
    port: int


class SleepAction(NamedTuple):
    """Wait; only for hooks."""

    seconds: float


class UnsupportedAction(NamedTuple):
    """An action that this node does not support."""

    what: str


HandlerAction = ExecAction | HttpGetAction | TcpSocketAction | SleepAction | UnsupportedAction


class Probe(Struct, frozen=True):
    """How often a handler runs, and how many results count."""

    kind: str
    action: HandlerAction
    delay_s: float
    period_s: float
    timeout_s: float
    successes: int
    failures: int


def probe_of(container: Container, kind: str) -> Probe | None:
    """Return a probe of a container, if it has one."""
    written = {
        STARTUP: container.startup_probe,
        LIVENESS: container.liveness_probe,
        READINESS: container.readiness_probe,
    }[kind]
    if not isinstance(written, dict):
        return None
    return Probe(
        kind=kind,
        action=action_of(container, written),
        delay_s=float(written.get("initialDelaySeconds") or 0),
        period_s=float(written.get("periodSeconds") or 10),
        timeout_s=float(written.get("timeoutSeconds") or 1),
        successes=int(written.get("successThreshold") or 1),
        failures=int(written.get("failureThreshold") or 3),
    )


def has_probes(container: Container) -> bool:
    """Return whether a container has probes."""
    return any((container.startup_probe, container.liveness_probe, container.readiness_probe))


def action_of(container: Container, written: Mapping[str, Any]) -> HandlerAction:
    """Return the action of a probe or hook."""
    if (command := written.get("exec")) is not None:
        return ExecAction(tuple(map(str, command.get("command") or ())))
    if (page := written.get("httpGet")) is not None:
        return HttpGetAction(
            str(page.get("host") or ""),
            _port(container, page.get("port")),
            str(page.get("path") or "/"),
            str(page.get("scheme") or "HTTP").upper() == "HTTPS",
            tuple((str(e.get("name")), str(e.get("value"))) for e in page.get("httpHeaders") or ()),
        )
    if (socket := written.get("tcpSocket")) is not None:
        return TcpSocketAction(str(socket.get("host") or ""), _port(container, socket.get("port")))
    if (sleep := written.get("sleep")) is not None:
        return SleepAction(float(sleep.get("seconds") or 0))
    return UnsupportedAction(
        ", ".join(sorted(key for key in written if key == "grpc")) or "no action"
    )


def _port(container: Container, port: Any) -> int:
    """Return the number of a port that may be named; 0 for an unknown name."""
    text = "" if port is None else str(port)
    if text.isdigit():
        return int(text)
    ports = (int(each.container_port) for each in container.ports if each.name == text)
    return next(ports, 0)


class ProbeResults:
    """Counts results in a row."""

    def __init__(self, probe: Probe, verdict: bool | None = None) -> None:
        self._probe = probe
        self._last: bool | None = None
        self._run = 0
        self.verdict = verdict  # None: unknown yet

    def count(self, succeeded: bool) -> bool:
        """Take in a result; return whether the verdict changed."""
        self._run = self._run + 1 if succeeded is self._last else 1
        self._last = succeeded
        needed = self._probe.successes if succeeded else self._probe.failures
        if self._run < needed or self.verdict is succeeded:
            return False
        self.verdict = succeeded
        return True


# --- handlers -------------------------------------------------------------------------------------


class ProbeResult(NamedTuple):
    """The result of a handler."""

    succeeded: bool
    text: str = ""


class HandlerRunner:
    """Runs handlers, with a timeout."""

    def __init__(self, runtime: Runtime, clock: Clock, host: str) -> None:
        self._runtime = runtime
        self._clock = clock
        self._host = host or "127.0.0.1"

    async def run(self, id_: ContainerId, action: HandlerAction, timeout_s: float) -> ProbeResult:
        """Return the result of a handler; raises only when cancelled."""
        work = asyncio.ensure_future(self._run(id_, action))
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return ProbeResult(False, f"timed out after {timeout_s:g}s")
            return work.result()
        except (OSError, RuntimeRefusedError, ValueError, OverflowError) as error:
            return ProbeResult(False, str(error)[:TEXT_MAX])
        finally:
            for task in (work, timer):
                task.cancel()
            await asyncio.gather(work, timer, return_exceptions=True)

    async def _run(self, id_: ContainerId, action: HandlerAction) -> ProbeResult:
        match action:
            case ExecAction(command=command):
                return await self._execute(id_, command)
            case HttpGetAction():
                return await self._get(action)
            case TcpSocketAction(host=host, port=port):
                _, writer = await asyncio.open_connection(host or self._host, port)
                writer.close()
                return ProbeResult(True)
            case SleepAction(seconds=seconds):
                await self._clock.sleep(seconds)
                return ProbeResult(True)
            case UnsupportedAction(what=what):
                return ProbeResult(False, f"{what} is not supported by this node")

    async def _execute(self, id_: ContainerId, command: tuple[str, ...]) -> ProbeResult:
        session = await self._runtime.execute(id_, command, tty=False, stdin=False)
        try:
            text = await _output(session)
            code = await session.wait()
            return ProbeResult(code == 0, text)
        except asyncio.CancelledError:
            await session.kill()
            raise

    async def _get(self, page: HttpGetAction) -> ProbeResult:
        host = page.host or self._host
        context = _unchecked() if page.is_secure else None
        reader, writer = await asyncio.open_connection(host, page.port, ssl=context)
        try:
            lines = [f"GET {page.path} HTTP/1.1", f"Host: {host}:{page.port}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in page.headers]
            if any("\r" in line or "\n" in line for line in lines):
                raise ValueError("a line break in a path or header of the probe")
            writer.write(("\r\n".join((*lines, "User-Agent: kube-probe/1.37", "", ""))).encode())
            await writer.drain()
            status = (await reader.readline()).decode("latin-1", "replace").split()
        finally:
            writer.close()
        code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
        return ProbeResult(200 <= code < 400, f"HTTP probe failed with statuscode: {code}")


async def _output(session: ExecSession) -> str:
    data = b""
    async for _, part in session.output():
        data = (data + part)[:TEXT_MAX]
    return data.decode("utf-8", "replace")


def _unchecked() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate, as probes do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLError):
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


# --- probe workers --------------------------------------------------------------------------------


class ProbeListener(Protocol):
    """Receives the results of a container's probes."""

    def has_started(self, id_: ContainerId) -> None:
        """Note that a container is past its startup probe."""

    def is_ready(self, id_: ContainerId, ready: bool) -> None:
        """Note whether a container is ready."""

    def is_unhealthy(self, id_: ContainerId, message: str) -> None:
        """Mark a container to be killed."""


async def probe(
    container: Container,
    id_: ContainerId,
    *,
    listener: ProbeListener,
    handlers: HandlerRunner,
    clock: Clock,
    report: Callable[[str], None],
    was_up: bool = False,
) -> None:
    """Probe a container until cancelled, or until it must be killed."""

    async def verdicts(found: Probe, first: bool | None = None) -> AsyncIterator[bool]:
        """Yield the verdict of a probe whenever it changes."""
        results = ProbeResults(found, first)
        await clock.sleep(found.delay_s)
        while True:
            answer = await handlers.run(id_, found.action, found.timeout_s)
            if not answer.succeeded:
                report(f"{found.kind} probe failed: {answer.text}")
            if results.count(answer.succeeded):
                yield answer.succeeded
            await clock.sleep(found.period_s)

    def give_up(kind: str) -> None:
        text = f"Container {container.name} failed {kind.lower()} probe, will be restarted"
        listener.is_unhealthy(id_, text)

    async def check_liveness() -> None:
        if (found := probe_of(container, LIVENESS)) is not None:
            async for succeeded in verdicts(found, True):
                if not succeeded:
                    give_up(LIVENESS)

    async def check_readiness() -> None:
        if (found := probe_of(container, READINESS)) is not None:
            async for succeeded in verdicts(found):
                listener.is_ready(id_, succeeded)

    startup = probe_of(container, STARTUP)
    if startup is not None and not was_up and not await anext(verdicts(startup)):
        give_up(STARTUP)
        return
    listener.has_started(id_)
    if probe_of(container, READINESS) is None:
        listener.is_ready(id_, True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(check_liveness())
        tasks.create_task(check_readiness())
