"""Probes as they are written in a container, and what their answers come to (pure)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from mooring.api.core import Container
from mooring.kit.clock import Clock
from mooring.node.runtime.contract import ContainerId, ExecSession, Runtime, RuntimeRefusedError

STARTUP, LIVENESS, READINESS = "Startup", "Liveness", "Readiness"


class ExecAction(NamedTuple):
    """Run a command; 0 is well."""

    command: tuple[str, ...]


class HttpGetAction(NamedTuple):
    """Get a page; 200 to 399 is well."""

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
    """Wait a while; only for hooks."""

    seconds: float


class UnsupportedAction(NamedTuple):
    """Something that this node does not do."""

    what: str


HandlerAction = ExecAction | HttpGetAction | TcpSocketAction | SleepAction | UnsupportedAction


class Probe(Struct, frozen=True):
    """What is asked how often, and how many answers count."""

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
    """Tell whether a container is asked how it is."""
    return any(
        (container.startup_probe, container.liveness_probe, container.readiness_probe),
    )


def action_of(container: Container, written: Mapping[str, Any]) -> HandlerAction:
    """Return what a probe or hook does."""
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


def _port(container: Container, given: Any) -> int:
    """Return the number of a port that may be named; 0 for a name that there is not."""
    text = str(given if given is not None else "")
    if text.isdigit():
        return int(text)
    ports = (int(port.container_port) for port in container.ports if port.name == text)
    return next(ports, 0)


class ProbeWorkerResults:
    """Counts answers until they say something."""

    def __init__(self, probe: Probe, verdict: bool | None = None) -> None:
        self._probe = probe
        self._last: bool | None = None
        self._run = 0
        self.verdict = verdict  # None: not known yet

    def count(self, is_well: bool) -> bool:
        """Take in an answer; return whether the verdict is another than before."""
        self._run = self._run + 1 if is_well is self._last else 1
        self._last = is_well
        needed = self._probe.successes if is_well else self._probe.failures
        if self._run < needed or self.verdict is is_well:
            return False
        self.verdict = is_well
        return True


# ---- from mooring.node.pods.asking: How a container is: a command run beside it, a page got, a connection opened.

TEXT_MAX = 1024


class ProbeResult(NamedTuple):
    """What came back."""

    is_well: bool
    text: str = ""


class HandlerRunner:
    """Asks containers, with a bound on the time."""

    def __init__(self, runtime: Runtime, clock: Clock, host: str) -> None:
        self._runtime = runtime
        self._clock = clock
        self._host = host or "127.0.0.1"

    async def ask(self, id_: ContainerId, action: HandlerAction, timeout_s: float) -> ProbeResult:
        """Return how it went; never raises but when cancelled."""
        work = asyncio.ensure_future(self._ask(id_, action))
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return ProbeResult(False, f"timed out after {timeout_s:g}s")
            return work.result()
        except (OSError, RuntimeRefusedError, ValueError, ssl.SSLError) as error:
            return ProbeResult(False, str(error)[:TEXT_MAX])
        finally:
            for task in (work, timer):
                task.cancel()
            await asyncio.gather(work, timer, return_exceptions=True)

    async def _ask(self, id_: ContainerId, action: HandlerAction) -> ProbeResult:
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
    """Return how to speak TLS with whoever answers: probes check no certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLError):
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


# ---- from mooring.node.pods.prober: Probes of one container, asked as long as it runs.


class ProbeListener(Protocol):
    """Who is told how a container is."""

    def is_up(self, id_: ContainerId) -> None:
        """Take that a container is past its start."""

    def is_ready(self, id_: ContainerId, ready: bool) -> None:
        """Take whether a container can serve."""

    def is_ailing(self, id_: ContainerId, message: str) -> None:
        """Take that a container is to be killed."""


async def probe(
    container: Container,
    id_: ContainerId,
    *,
    patient: ProbeListener,
    asking: HandlerRunner,
    clock: Clock,
    tell: Callable[[str], None],
    was_up: bool = False,
) -> None:
    """Ask a container how it is until cancelled, or until it is given up."""

    async def follow(kind: str, verdict: bool | None, told: Callable[[bool], None]) -> None:
        found = probe_of(container, kind)
        if found is not None:
            await _follow(found, ProbeWorkerResults(found, verdict), id_, asking, clock, tell, told)

    def gives_up(kind: str) -> Callable[[bool], None]:
        text = f"Container {container.name} failed {kind.lower()} probe, will be restarted"
        return lambda is_well: None if is_well else patient.is_ailing(id_, text)

    startup = probe_of(container, STARTUP)
    if startup is not None and not was_up:
        tally = ProbeWorkerResults(startup)
        await _until_known(startup, tally, id_, asking, clock, tell)
        if not tally.verdict:
            gives_up(STARTUP)(False)
            return
    patient.is_up(id_)
    if probe_of(container, READINESS) is None:
        patient.is_ready(id_, True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follow(LIVENESS, True, gives_up(LIVENESS)))
        ready = follow(READINESS, None, lambda is_well: patient.is_ready(id_, is_well))
        tasks.create_task(ready)


async def _until_known(
    asked: Probe,
    tally: ProbeWorkerResults,
    id_: ContainerId,
    asking: HandlerRunner,
    clock: Clock,
    tell: Callable[[str], None],
) -> None:
    await clock.sleep(asked.delay_s)
    while tally.verdict is None:
        tally.count(await _ask(asked, id_, asking, tell))
        if tally.verdict is None:
            await clock.sleep(asked.period_s)


async def _follow(
    asked: Probe,
    tally: ProbeWorkerResults,
    id_: ContainerId,
    asking: HandlerRunner,
    clock: Clock,
    tell: Callable[[str], None],
    told: Callable[[bool], None],
) -> None:
    await clock.sleep(asked.delay_s)
    while True:
        if tally.count(await _ask(asked, id_, asking, tell)):
            told(bool(tally.verdict))
        await clock.sleep(asked.period_s)


async def _ask(
    asked: Probe, id_: ContainerId, asking: HandlerRunner, tell: Callable[[str], None]
) -> bool:
    answer: ProbeResult = await asking.ask(id_, asked.action, asked.timeout_s)
    if not answer.is_well:
        tell(f"{asked.kind} probe failed: {answer.text}")
    return answer.is_well
