"""The runtime that runs containers as processes, and how a container becomes a launch.

`launch_of` turns a container spec and its CDI edits into the launch that the shim executes.
Settings that a process cannot have are rejected, or noted in the container's status.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from moorage.api.cdi import ContainerEdits, DeviceNode, Mount
from moorage.api.process_binding import process_binding
from moorage.api.timestamp import Timestamp
from moorage.hardware.numbers import parse_cpu_list
from moorage.kit.clock import REAL, Clock
from moorage.node.errors import UnresolvableError
from moorage.node.runtime.cdi import CdiSpecs
from moorage.node.runtime.contract import (
    SHARED,
    ContainerId,
    ContainerSpec,
    ContainerState,
    ContainerStats,
    LifecycleEvents,
    LogRange,
    Phase,
    ResourceLimits,
    RuntimeRefusedError,
    SubPathMount,
    check_id,
)
from moorage.node.runtime.process.confinement import Agent, confinement_of, home_of
from moorage.node.runtime.process.container_logs import read_logs
from moorage.node.runtime.process.shim_client import ProcessSession, ShimClient, ShimState
from moorage.node.runtime.shim.protocol import ContainerKey, Launch, LaunchError, MountLaunch

VERSION = 1
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFUSED = "CreateContainerError"


class ProcessRuntime:
    """Runs containers as processes, which outlive it."""

    def __init__(
        self,
        root: Path,
        cdi_folders: Sequence[Path] = (),
        *,
        clock: Clock = REAL,
        shim_options: dict[str, Any] | None = None,
    ) -> None:
        """Take the shim's folder, and those of CDI specs.

        `shim_options`: `idle_s`, after which an idle shim ends; `cgroup_mount`.
        """
        self._root, self._clock = root, clock
        self._specs = CdiSpecs(cdi_folders)
        self._phases: dict[ContainerId, Phase] = {}
        self._events = LifecycleEvents(self._is_connected)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._client = ShimClient(
            root.resolve(),
            on_state=self._note_state,
            on_lost=self._events.wake,
            options=shim_options,
            clock=clock,
        )

    @property
    def name(self) -> str:
        """Its name and version."""
        return f"process://{VERSION}"

    async def shim_pid(self) -> int:
        """Return the pid of the shim, which is started if there is none."""
        await self._client.ensure()
        return self._client.shim_pid

    async def containers(self, pod_uid: str = "") -> Sequence[ContainerState]:
        """Return the containers that are not removed, also those of an earlier agent."""
        states = map(_state, await self._client.ask("containers", pod_uid=pod_uid))
        # A shim of an older version returns all.
        return [each for each in states if pod_uid in ("", each.id.pod_uid)]

    def changes(self) -> AsyncIterator[ContainerState]:
        """Yield each container whose phase changes, until the runtime is closed."""
        return self._events.follow()

    async def _is_connected(self) -> bool:
        """Reconnect to the shim if it was lost; return whether the runtime is still open."""
        if self._client.is_closed:
            return False
        await self._client.ensure()
        return True

    async def start(self, spec: ContainerSpec) -> ContainerState:
        """Start a container, or return its state if it was started; else RuntimeRefusedError."""
        await self._client.ensure()
        try:
            edits = spec.edits + self._specs.edits(spec.cdi_ids)
        except UnresolvableError as error:
            raise RuntimeRefusedError(REFUSED, str(error)) from None
        controllers = self._client.controllers
        launch = launch_of(spec, edits, controllers=controllers, agent=Agent.current())
        return _state(await self._client.ask("start", launch=launch.message()))

    async def update(self, id_: ContainerId, limits: ResourceLimits) -> None:
        """Change the CPU and memory limits of a running container, or raise RuntimeRefusedError."""
        amounts = {"cpu_millis": limits.cpu_millis, "memory_bytes": limits.memory_bytes}
        await self._client.ask("update", key=key_of(id_), **amounts)

    async def stats(self) -> Sequence[ContainerStats]:
        """Return what running containers have used."""
        return [
            ContainerStats(ContainerId(*each["key"]), each["cpu_ns"], each["memory_bytes"])
            for each in await self._client.ask("stats")
        ]

    async def stop(self, id_: ContainerId, grace_s: float) -> None:
        """Send SIGTERM, kill after the grace period, and return when the container has ended."""
        await self._client.ask("stop", key=key_of(id_), grace_s=grace_s)

    async def remove(self, pod_uid: str) -> None:
        """Remove the containers of a pod and their logs; running ones are killed."""
        await self._client.ask("remove", pod_uid=pod_uid)
        self._phases = {id_: each for id_, each in self._phases.items() if id_.pod_uid != pod_uid}

    async def forget(self, id_: ContainerId) -> None:
        """Remove one ended container and its log, such as an old attempt."""
        await self._client.ask("forget", key=key_of(id_))
        self._phases.pop(id_, None)

    def logs(self, id_: ContainerId, log_range: LogRange) -> AsyncIterator[bytes]:
        """Yield parts of a container's log, up to now or, if followed, to its end."""
        key = key_of(id_)
        folder = self._root / "containers" / key.pod_uid / key.name / str(key.attempt)
        return read_logs(folder, log_range, self._clock)

    async def execute(
        self, id_: ContainerId, command: Sequence[str], *, tty: bool, stdin: bool
    ) -> ProcessSession:
        """Run a command beside a running container, with its environment and devices."""
        session = ProcessSession(*await self._client.connect())
        request = {"key": key_of(id_), "command": list(command), "tty": tty, "stdin": stdin}
        await session.begin(request)
        return session

    async def attach(self, id_: ContainerId, *, stdin: bool, tty: bool) -> ProcessSession:  # noqa: ARG002
        """Receive a running container's output from now on, and send input if it takes any."""
        session = ProcessSession(*await self._client.connect())
        await session.begin({"ask": "attach", "key": key_of(id_), "stdin": stdin})
        return session

    async def close(self) -> None:
        """Disconnect; containers run on."""
        await self._client.close()

    async def shut_down(self, grace_s: float = 0.0) -> None:
        """Stop all containers and the shim. Records and logs stay."""
        await self._client.ask("quit", grace_s=grace_s)
        await self.close()

    def _note_state(self, state: ShimState) -> None:
        """Pass on a state if it is a change; a new connection reports all containers."""
        changed = _state(state)
        if self._phases.get(changed.id) is not changed.phase:
            self._phases[changed.id] = changed.phase
            if self._client.has_greeted:
                self._events.publish(changed)


def _state(state: ShimState) -> ContainerState:
    pod_uid, name, attempt = state["key"]
    id_ = ContainerId(pod_uid, name, attempt)
    finished = state["finished"]
    return ContainerState(
        id_,
        Phase.RUNNING if finished is None else Phase.EXITED,
        started_at=_timestamp(state["started"]),
        finished_at=None if finished is None else _timestamp(finished),
        exit_code=state["exit_code"],
        signal=state["signal"],
        reason=state["reason"],
        message=state["message"],
        handle=f"process://{id_}",
    )


def _timestamp(seconds: float) -> Timestamp:
    return Timestamp(datetime.fromtimestamp(seconds, UTC))


# --- launches -------------------------------------------------------------------------------------


def launch_of(
    spec: ContainerSpec, edits: ContainerEdits, *, controllers: Collection[str], agent: Agent
) -> Launch:
    """Return the launch of a container with its edits, or raise RuntimeRefusedError.

    `controllers` are the usable cgroup controllers.
    """
    key = key_of(spec.id)
    if not spec.command:
        raise RuntimeRefusedError(
            REFUSED,
            f"container {spec.id.name}: the process runtime has no images, and so no entry point: "
            "set `command`, or use --runtime podman",
        )
    notes = list(_notes(spec, edits, controllers, is_root=agent.is_root))
    environment = _environment(spec, edits)
    binding = process_binding(environment)
    return Launch(
        key,
        digest=hashlib.sha256(msgspec.json.encode(spec)).hexdigest()[:16],
        command=_checked_words((*spec.command, *spec.args)),
        environment={**environment, **binding.variables},
        folder=spec.working_dir or "/",
        mounts=(*_device_mounts(edits.device_nodes), *_mounts(edits.mounts)),
        groups=edits.additional_gids,
        cpus=_numbers("CPUs", binding.cpus) or spec.limits.cpus,
        memory_nodes=_numbers("memory nodes", binding.memory_nodes) or spec.limits.memory_nodes,
        cpu_millis=spec.limits.cpu_millis,
        memory_bytes=spec.limits.memory_bytes,
        tty=spec.tty,
        stdin=spec.stdin,
        stdin_once=spec.stdin_once,
        note=f"unsupported: {'; '.join(notes)}" if notes else "",
        confinement=confinement_of(spec, agent),
    )


def key_of(id_: ContainerId) -> ContainerKey:
    """Return an id in the shim's form, or raise RuntimeRefusedError."""
    check_id(id_)
    try:
        return ContainerKey.read([id_.pod_uid, id_.name, id_.attempt])
    except LaunchError as error:
        raise RuntimeRefusedError(REFUSED, str(error)) from None


def _environment(spec: ContainerSpec, edits: ContainerEdits) -> dict[str, str]:
    """Return the basic variables, those of the container, and those of its devices."""
    base = {"PATH": _path(), "HOME": home_of(spec), "HOSTNAME": spec.host_name or spec.pod_name}
    of_devices = dict(variable.partition("=")[::2] for variable in edits.env)
    environment = {**base, **spec.env, **of_devices}
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            text = (
                f"environment variable {name[:128]!r}: not a name and value that a process can have"
            )
            raise RuntimeRefusedError(REFUSED, text)
    return environment


def _path() -> str:
    """Return the usual PATH, and at its end the folder of `moor`: its drivers run in pods, too."""
    own = sysconfig.get_path("scripts")
    is_other = own not in PATH.split(":") and os.path.exists(f"{own}/moor")
    return f"{PATH}:{own}" if is_other else PATH


def _numbers(what: str, lists: tuple[str, ...]) -> tuple[int, ...]:
    """Return the sorted numbers of all lists that devices bind a container to."""
    try:
        found = {number for text in lists for number in parse_cpu_list(text)}
    except ValueError as error:
        raise RuntimeRefusedError(REFUSED, f"{what} of devices: {error}") from None
    return tuple(sorted(found))


def _checked_words(words: tuple[str, ...]) -> tuple[str, ...]:
    if any("\0" in word for word in words):
        raise RuntimeRefusedError(REFUSED, "command: a NUL character cannot be in it")
    return words


def _device_mounts(nodes: tuple[DeviceNode, ...]) -> Iterator[MountLaunch]:
    """Yield the device files to show at another path; the others are there anyway."""
    for node in nodes:
        source = node.host_path or node.path
        if not os.path.exists(source):
            raise RuntimeRefusedError(REFUSED, f"device {source}: not on this machine")
        if source != node.path:
            yield MountLaunch(source, node.path)


def _mounts(mounts: tuple[Mount, ...]) -> Iterator[MountLaunch]:
    for mount in mounts:
        kind = mount.type or "bind"
        if not os.path.isabs(mount.container_path):
            text = f"mount at {mount.container_path[:128]!r}: not an absolute path"
            raise RuntimeRefusedError(REFUSED, text)
        if SHARED in mount.options:
            text = "a process cannot have mountPropagation Bidirectional"
            raise RuntimeRefusedError(REFUSED, f"mount at {mount.container_path}: {text}")
        if kind == "bind" and not os.path.exists(mount.host_path):
            text = f"mount at {mount.container_path}: host path {mount.host_path} does not exist"
            raise RuntimeRefusedError(REFUSED, text)
        if isinstance(mount, SubPathMount):
            yield MountLaunch(mount.root, mount.container_path, kind, mount.options, mount.within)
            continue
        is_there = kind == "bind" and mount.host_path == mount.container_path
        if not is_there or "ro" in mount.options:
            yield MountLaunch(mount.host_path, mount.container_path, kind, mount.options)


def _notes(
    spec: ContainerSpec, edits: ContainerEdits, controllers: Collection[str], *, is_root: bool
) -> Iterator[str]:
    for hook in edits.hooks:
        yield f"{hook.hook_name} hook {hook.path} is not run"
    for device in edits.net_devices:
        yield f"network interface {device.host_interface_name} stays with the host"
    if edits.intel_rdt is not None:
        yield "shares of cache and memory bandwidth (intelRdt) are not set"
    if edits.additional_gids and not is_root:
        yield f"groups {', '.join(map(str, edits.additional_gids))} need root"
    if spec.limits.memory_bytes is not None and "memory" not in controllers:
        yield "memory limit is not kept: no cgroup can be written"
    if spec.limits.cpu_millis is not None and "cpu" not in controllers:
        yield "cpu limit is not kept: no cgroup can be written"
