"""Podman's command lines, and the output of podman, as values (pure)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from moorage.api.cdi import ContainerEdits, Mount
from moorage.api.errors import DecodeError
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.node.runtime.contract import (
    READ_ONLY_ALL,
    READ_ONLY_ALL_IF_POSSIBLE,
    ContainerId,
    ContainerSpec,
    ContainerState,
    LogRange,
    Phase,
    ResourceLimits,
    RuntimeRefusedError,
    check_id,
)
from moorage.node.runtime.podman.security_options import security_options

OWNER = "dev.moorage.owner"  # the agent, by its root folder
POD, CONTAINER, ATTEMPT = "dev.moorage.pod", "dev.moorage.container", "dev.moorage.attempt"
HOSTNAME_LENGTH_MAX = 63
GRACE_S_MAX = 2**31 - 1  # podman refuses more; pods may have any number of 64 bits
ANNOTATION_LENGTH_MAX = 16_384
FILE_VALUE_LENGTH_MAX = 8_192  # podman reads lines of up to 64 KiB
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")

# One line for each container, with the fields of Inspected.
INSPECTED = (
    '{"id":{{json .ID}},"image":{{json .Image}},"labels":{{json .Config.Labels}},'
    '"state":{{json .State}}}'
)
_NEVER_STARTED = frozenset(("configured", "created", "initialized"))
KILLED = 137
_RUNNING = frozenset(("running", "paused", "stopping"))


def name_of(owner: str, id_: ContainerId) -> str:
    """Return a container's name in podman, or raise RuntimeRefusedError."""
    check_id(id_)
    return f"moor_{owner}_{id_.pod_uid}_{id_.name}_{id_.attempt}"


def run_line(
    owner: str,
    spec: ContainerSpec,
    env_file: str = "",
    user: int | str | None = None,
    *,
    is_root: bool = True,
) -> list[str]:
    """Return the command that starts a container; RuntimeRefusedError if podman cannot.

    `user` is that of the image, where it must be known; `is_root` is podman's own right.
    Variables are read from a file where possible: everyone on a machine can see command lines.
    """
    id_ = spec.id
    labels = {OWNER: owner, POD: id_.pod_uid, CONTAINER: id_.name, ATTEMPT: str(id_.attempt)}
    return [
        *("run", "--detach", "--pull=never", "--log-driver=k8s-file", "--network=host"),
        f"--name={name_of(owner, id_)}",
        f"--hostname={_host_name(spec)}",
        *(f"--label={key}={value}" for key, value in labels.items()),
        *(f"--annotation={each}" for each in _annotations(spec)),
        *([f"--env-file={env_file}"] if env_file else []),
        *(
            f"--env={key}={value}"
            for key, value in spec.env.items()
            if not (env_file and _fits_file(key, value))
        ),
        *([f"--workdir={spec.working_dir}"] if spec.working_dir else []),
        *([f"--entrypoint={json.dumps(spec.command)}"] if spec.command else []),
        *(["--tty"] if spec.tty else []),
        *(["--interactive"] if spec.stdin else []),
        *_limits(spec.limits),
        *security_options(spec.security, user, is_root=is_root),
        *(f"--device={each}" for each in spec.cdi_ids),
        *_edits(spec.edits),
        checked_image(spec.image),
        *spec.args,
    ]


def _host_name(spec: ContainerSpec) -> str:
    return (spec.host_name or spec.pod_name)[:HOSTNAME_LENGTH_MAX].rstrip("-.") or "pod"


def env_file_of(spec: ContainerSpec) -> str:
    """Return the content of podman's file of variables, with those that it can hold."""
    held = ((key, value) for key, value in spec.env.items() if _fits_file(key, value))
    return "".join(f"{key}={value}\n" for key, value in held)


def _fits_file(key: str, value: str) -> bool:
    """Return whether podman reads a variable from a file unchanged; not if it has several lines.

    Podman's own environment is no place for the others: a pod may choose names that podman, its
    helpers or the loader obey (LD_PRELOAD, CONTAINERS_CONF).
    """
    return (
        _PLAIN_NAME.fullmatch(key) is not None
        and not value.startswith(("'", '"'))  # which some versions strip
        and not any(each in value for each in "\n\r\0")
        and len(value) <= FILE_VALUE_LENGTH_MAX
    )


def stop_line(name: str, grace_s: float) -> list[str]:
    """Return the command that stops a container."""
    seconds = min(max(math.ceil(grace_s), 0), GRACE_S_MAX)
    return ["stop", "--ignore", f"--time={seconds}", name]


def list_line(owner: str, pod_uid: str | None = None) -> list[str]:
    """Return the command that lists our containers, of one pod or of all."""
    pod = [] if pod_uid is None else [f"--filter=label={POD}={pod_uid}"]
    return ["ps", "--all", "--quiet", "--no-trunc", f"--filter=label={OWNER}={owner}", *pod]


def logs_line(name: str, log_range: LogRange) -> list[str]:
    """Return the command that reads a log."""
    return [
        "logs",
        *(["--follow"] if log_range.follow else []),
        *(["--timestamps"] if log_range.has_times else []),
        *([] if log_range.tail_lines is None else [f"--tail={max(log_range.tail_lines, 0)}"]),
        *([] if log_range.since is None else [f"--since={log_range.since.instant.isoformat()}"]),
        name,
    ]


def attach_line(name: str, *, stdin: bool) -> list[str]:
    """Return the command that attaches to a container; no keys detach from it."""
    options = [] if stdin else ["--no-stdin"]
    return ["attach", "--sig-proxy=false", "--detach-keys=", *options, name]


def events_line(owner: str, since_s: float) -> list[str]:
    """Return the command that follows the starts and ends of our containers."""
    kinds = ("--filter=type=container", "--filter=event=start", "--filter=event=died")
    ours = f"--filter=label={OWNER}={owner}"
    return ["events", "--format=json", f"--since={since_s:.3f}", *kinds, ours]


def checked_image(image: str) -> str:
    """Return the name of an image, or raise RuntimeRefusedError."""
    if not image:
        text = "the container has no image, and podman runs nothing without one"
        raise RuntimeRefusedError("InvalidImageName", text)
    if image.startswith("-") or not image.isprintable() or " " in image:
        text = f"Failed to apply default image tag {image[:256]!r}: invalid reference format"
        raise RuntimeRefusedError("InvalidImageName", text)
    return image


def _annotations(spec: ContainerSpec) -> Iterator[str]:
    """Yield annotations, which hooks of the container may read, except oversized ones."""
    for key, value in spec.annotations.items():
        if len(value) <= ANNOTATION_LENGTH_MAX:
            yield f"{key}={value}"


def _limits(limits: ResourceLimits) -> Iterator[str]:
    if limits.cpu_millis is not None:
        yield f"--cpus={limits.cpu_millis / 1000:g}"
    if limits.memory_bytes is not None:
        yield f"--memory={limits.memory_bytes}b"
    if limits.cpus:
        yield f"--cpuset-cpus={','.join(map(str, limits.cpus))}"
    if limits.memory_nodes:
        yield f"--cpuset-mems={','.join(map(str, limits.memory_nodes))}"


def _edits(edits: ContainerEdits) -> Iterator[str]:
    for what, values in (
        ("hooks", edits.hooks),
        ("network interfaces", edits.net_devices),
        ("shares of Intel RDT", edits.intel_rdt),
    ):
        if values:
            text = f"podman makes no {what} but those of CDI devices it looks up itself"
            raise RuntimeRefusedError("CreateContainerError", text)
    # Without "=" podman would take the value from its own environment.
    yield from (f"--env={each if '=' in each else f'{each}='}" for each in edits.env)
    for node in edits.device_nodes:
        parts = (node.host_path or node.path, node.path, node.permissions)
        yield f"--device={_joined(*(part for part in parts if part))}"
    yield from map(_mount, edits.mounts)
    yield from (f"--group-add={each}" for each in edits.additional_gids)


def _mount(mount: Mount) -> str:
    if READ_ONLY_ALL in mount.options:
        text = f"the volume at {mount.container_path} requested recursive read-only mode"
        fact = "but it is not supported by the runtime"
        raise RuntimeRefusedError("CreateContainerConfigError", f"{text}, {fact}")
    unused = ("bind", "rbind", READ_ONLY_ALL_IF_POSSIBLE)
    options = ",".join(each for each in mount.options if each not in unused)
    if mount.type == "tmpfs":
        return f"--tmpfs={_joined(mount.container_path, *([options] if options else []))}"
    parts = (mount.host_path, mount.container_path, *([options] if options else []))
    return f"--volume={_joined(*parts)}"


def _joined(*parts: str) -> str:
    """Return parts joined by colons; podman cannot escape a colon in a part."""
    for part in parts:
        if ":" in part:
            text = f"{part[:256]!r} has a colon, and podman cannot have it in a container"
            raise RuntimeRefusedError("CreateContainerError", text)
    return ":".join(parts)


# --- output ---------------------------------------------------------------------------------------


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
    """Yield the containers of an output; other lines are skipped."""
    for line in output.splitlines():
        try:
            yield msgspec.json.decode(line, type=Inspected)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue


def event_id(line: bytes) -> str:
    """Return the container that an event is about, "" if none."""
    try:
        event = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    return str(event.get("ID", ""))


def state_of(container: Inspected) -> ContainerState | None:
    """Return the state of a container, None if it is not ours or was never started."""
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
    finished_at = _time(state.finished_at)
    if finished_at.is_zero:  # the machine went down, and nobody saw it end
        reason, message = "ContainerStatusUnknown", "The container was not there to be asked"
        unknown = {"reason": reason, "message": message, "exit_code": KILLED}
        return {"finished_at": started.started_at, **unknown}
    return {
        # Podman may report that a short container ended before it started.
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
