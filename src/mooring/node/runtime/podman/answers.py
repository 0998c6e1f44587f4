"""What podman says of containers, read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from mooring.api.errors import DecodeError
from mooring.api.timestamp import NO_TIME, Timestamp
from mooring.node.runtime.contract import ContainerId, ContainerState, Phase
from mooring.node.runtime.podman.commandlines import ATTEMPT, CONTAINER, POD

_NEVER_STARTED = frozenset(("configured", "created", "initialized"))
KILLED = 137
_RUNNING = frozenset(("running", "paused", "stopping"))


class _State(Struct, frozen=True, rename="pascal"):
    status: str = ""
    oom_killed: bool = field(default=False, name="OOMKilled")
    exit_code: int = 0
    error: str = ""
    started_at: str = ""
    finished_at: str = ""


class Inspected(Struct, frozen=True):
    """A container as podman inspects it."""

    id: str
    state: _State
    image: str = ""
    labels: dict[str, str] | None = None


def read_inspected(output: bytes) -> Iterator[Inspected]:
    """Yield the containers of an answer; lines that are something else are passed over."""
    for line in output.splitlines():
        try:
            yield msgspec.json.decode(line, type=Inspected)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue


def event_id(line: bytes) -> str:
    """Return the container that an event is about, "" if it is about none."""
    try:
        event = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    return str(event.get("ID", ""))


def state_of(container: Inspected) -> ContainerState | None:
    """Return what became of a container, None if it is not ours or was never started."""
    id_ = _id(container.labels or {})
    state = container.state
    if id_ is None or state.status in _NEVER_STARTED:
        return None
    started = ContainerState(
        id_,
        Phase.RUNNING,
        _time(state.started_at),
        handle=f"podman://{container.id}",
        image_id=container.image,
    )
    if state.status in _RUNNING:
        return started
    return msgspec.structs.replace(started, phase=Phase.EXITED, **_ending(state, started))


def _ending(state: _State, started: ContainerState) -> dict[str, Any]:
    """Return how a container ended."""
    finished_at = _time(state.finished_at)
    if finished_at.is_zero:  # the machine went down with it, and nobody saw its end
        reason, message = "ContainerStatusUnknown", "The container was not there to be asked"
        unknown = {"reason": reason, "message": message, "exit_code": KILLED}
        return {"finished_at": started.started_at, **unknown}
    return {
        # One that ends at once may, by podman's book, have ended before it started.
        "finished_at": max(finished_at, started.started_at),
        "exit_code": state.exit_code,
        "reason": _reason(state),
        "message": state.error[:4096],
    }


def _reason(state: _State) -> str:
    if state.oom_killed:
        return "OOMKilled"
    return "Error" if state.exit_code else "Completed"


def _id(labels: dict[str, str]) -> ContainerId | None:
    attempt = labels.get(ATTEMPT, "")
    if not (POD in labels and CONTAINER in labels and attempt.isascii() and attempt.isdigit()):
        return None
    return ContainerId(labels[POD], labels[CONTAINER], int(attempt[:9]))


def _time(text: str) -> Timestamp:
    try:
        return Timestamp.parse(text)
    except DecodeError:
        return NO_TIME
