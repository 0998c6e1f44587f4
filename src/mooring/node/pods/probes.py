"""Probes as they are written in a container, and what their answers come to (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from mooring.api.core import Container

STARTUP, LIVENESS, READINESS = "Startup", "Liveness", "Readiness"


class Exec(NamedTuple):
    """Run a command; 0 is well."""

    command: tuple[str, ...]


class Http(NamedTuple):
    """Get a page; 200 to 399 is well."""

    host: str  # empty: the pod
    port: int
    path: str
    is_secure: bool
    headers: tuple[tuple[str, str], ...] = ()


class Tcp(NamedTuple):
    """Open a connection."""

    host: str
    port: int


class Pause(NamedTuple):
    """Wait a while; only for hooks."""

    seconds: float


class Unsupported(NamedTuple):
    """Something that this node does not do."""

    what: str


Action = Exec | Http | Tcp | Pause | Unsupported


class Probe(Struct, frozen=True):
    """What is asked how often, and how many answers count."""

    kind: str
    action: Action
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


def action_of(container: Container, written: Mapping[str, Any]) -> Action:
    """Return what a probe or hook does."""
    if (command := written.get("exec")) is not None:
        return Exec(tuple(map(str, command.get("command") or ())))
    if (page := written.get("httpGet")) is not None:
        return Http(
            str(page.get("host") or ""),
            _port(container, page.get("port")),
            str(page.get("path") or "/"),
            str(page.get("scheme") or "HTTP").upper() == "HTTPS",
            tuple((str(e.get("name")), str(e.get("value"))) for e in page.get("httpHeaders") or ()),
        )
    if (socket := written.get("tcpSocket")) is not None:
        return Tcp(str(socket.get("host") or ""), _port(container, socket.get("port")))
    if (sleep := written.get("sleep")) is not None:
        return Pause(float(sleep.get("seconds") or 0))
    return Unsupported(", ".join(sorted(key for key in written if key == "grpc")) or "no action")


def _port(container: Container, given: Any) -> int:
    """Return the number of a port that may be named; 0 for a name that there is not."""
    text = str(given if given is not None else "")
    if text.isdigit():
        return int(text)
    ports = (int(port.container_port) for port in container.ports if port.name == text)
    return next(ports, 0)


class Tally:
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
