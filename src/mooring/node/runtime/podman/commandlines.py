"""What podman is asked: command lines, as values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from mooring.api.cdi import ContainerEdits, Mount
from mooring.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    Limits,
    LogRange,
    RuntimeRefusedError,
    check_id,
)

OWNER = "dev.mooring.owner"  # the agent, by its root folder
POD, CONTAINER, ATTEMPT = "dev.mooring.pod", "dev.mooring.container", "dev.mooring.attempt"
HOSTNAME_LENGTH_MAX = 63
ANNOTATION_LENGTH_MAX = 16_384
FILE_VALUE_LENGTH_MAX = 8_192  # podman reads lines of up to 64 KiB
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")

# One line for each container, with what we read of it.
INSPECTED = (
    '{"id":{{json .ID}},"image":{{json .Image}},"labels":{{json .Config.Labels}},'
    '"state":{{json .State}}}'
)


def name_of(owner: str, id_: ContainerId) -> str:
    """Return what a container is called at podman, or raise RuntimeRefusedError."""
    check_id(id_)
    return f"moor_{owner}_{id_.pod_uid}_{id_.name}_{id_.attempt}"


def run_line(owner: str, spec: ContainerSpec, env_file: str = "") -> list[str]:
    """Return how a container is started; RuntimeRefusedError for what podman cannot do.

    Variables that a file holds are read from it: everyone on a machine can see command lines.
    """
    id_ = spec.id
    labels = {OWNER: owner, POD: id_.pod_uid, CONTAINER: id_.name, ATTEMPT: str(id_.attempt)}
    return [
        *("run", "--detach", "--pull=never", "--log-driver=k8s-file", "--network=host"),
        f"--name={name_of(owner, id_)}",
        f"--hostname={spec.pod_name[:HOSTNAME_LENGTH_MAX].rstrip('-.') or 'pod'}",
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
        *(f"--device={each}" for each in spec.cdi_ids),
        *_edits(spec.edits),
        checked_image(spec.image),
        *spec.args,
    ]


def env_file_of(spec: ContainerSpec) -> str:
    """Return the file for podman with those variables that it can hold."""
    held = ((key, value) for key, value in spec.env.items() if _fits_file(key, value))
    return "".join(f"{key}={value}\n" for key, value in held)


def _fits_file(key: str, value: str) -> bool:
    """Tell whether podman reads a variable from a file just as it is; one with lines it does not.

    Podman's own environment is no place for the others: names that it, its helpers or the loader
    go by (LD_PRELOAD, CONTAINERS_CONF) are for a pod to choose.
    """
    return (
        _PLAIN_NAME.fullmatch(key) is not None
        and not value.startswith(("'", '"'))  # which some versions take away
        and not any(each in value for each in "\n\r\0")
        and len(value) <= FILE_VALUE_LENGTH_MAX
    )


def stop_line(name: str, grace_s: float) -> list[str]:
    """Return how a container is stopped."""
    return ["stop", "--ignore", f"--time={max(math.ceil(grace_s), 0)}", name]


def list_line(owner: str, pod_uid: str | None = None) -> list[str]:
    """Return how our containers are found, of one pod or of all."""
    pod = [] if pod_uid is None else [f"--filter=label={POD}={pod_uid}"]
    return ["ps", "--all", "--quiet", "--no-trunc", f"--filter=label={OWNER}={owner}", *pod]


def logs_line(name: str, wanted: LogRange) -> list[str]:
    """Return how a log is read."""
    return [
        "logs",
        *(["--follow"] if wanted.follow else []),
        *(["--timestamps"] if wanted.has_times else []),
        *([] if wanted.tail_lines is None else [f"--tail={max(wanted.tail_lines, 0)}"]),
        *([] if wanted.since is None else [f"--since={wanted.since.instant.isoformat()}"]),
        name,
    ]


def attach_line(name: str, *, stdin: bool) -> list[str]:
    """Return how one is attached to a container; no keys of the user's let go of it."""
    options = [] if stdin else ["--no-stdin"]
    return ["attach", "--sig-proxy=false", "--detach-keys=", *options, name]


def events_line(owner: str, since_s: float) -> list[str]:
    """Return how the starts and ends of our containers are followed."""
    kinds = ("--filter=type=container", "--filter=event=start", "--filter=event=died")
    ours = f"--filter=label={OWNER}={owner}"
    return ["events", "--format=json", f"--since={since_s:.3f}", *kinds, ours]


def checked_image(image: str) -> str:
    """Return the name of an image, unless it is none."""
    if not image:
        text = "the container has no image, and podman runs nothing without one"
        raise RuntimeRefusedError("InvalidImageName", text)
    if image.startswith("-") or not image.isprintable() or " " in image:
        text = f"Failed to apply default image tag {image[:256]!r}: invalid reference format"
        raise RuntimeRefusedError("InvalidImageName", text)
    return image


def _annotations(spec: ContainerSpec) -> Iterator[str]:
    """Yield what hooks of the container may read; what no command line can hold is left out."""
    for key, value in spec.annotations.items():
        if len(value) <= ANNOTATION_LENGTH_MAX:
            yield f"{key}={value}"


def _limits(limits: Limits) -> Iterator[str]:
    if limits.cpu_millis is not None:
        yield f"--cpus={limits.cpu_millis / 1000:g}"
    if limits.memory_bytes is not None:
        yield f"--memory={limits.memory_bytes}b"
    if limits.cpus:
        yield f"--cpuset-cpus={','.join(map(str, limits.cpus))}"
    if limits.memory_nodes:
        yield f"--cpuset-mems={','.join(map(str, limits.memory_nodes))}"


def _edits(edits: ContainerEdits) -> Iterator[str]:
    """Yield the options for what devices bring."""
    for what, values in (
        ("hooks", edits.hooks),
        ("network interfaces", edits.net_devices),
        ("shares of Intel RDT", edits.intel_rdt),
    ):
        if values:
            text = f"podman makes no {what} but those of CDI devices it looks up itself"
            raise RuntimeRefusedError("CreateContainerError", text)
    # Without "=" podman would take the value from our own environment.
    yield from (f"--env={each if '=' in each else f'{each}='}" for each in edits.env)
    for node in edits.device_nodes:
        parts = (node.host_path or node.path, node.path, node.permissions)
        yield f"--device={_joined(*(part for part in parts if part))}"
    yield from map(_mount, edits.mounts)
    yield from (f"--group-add={each}" for each in edits.additional_gids)


def _mount(mount: Mount) -> str:
    options = ",".join(each for each in mount.options if each not in ("bind", "rbind"))
    if mount.type == "tmpfs":
        return f"--tmpfs={_joined(mount.container_path, *([options] if options else []))}"
    parts = (mount.host_path, mount.container_path, *([options] if options else []))
    return f"--volume={_joined(*parts)}"


def _joined(*parts: str) -> str:
    """Return parts with colons between; podman cannot tell others from these."""
    for part in parts:
        if ":" in part:
            text = f"{part[:256]!r} has a colon, and podman cannot have it in a container"
            raise RuntimeRefusedError("CreateContainerError", text)
    return ":".join(parts)
