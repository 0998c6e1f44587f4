"""What a container comes to as a process: its launch, and what it cannot have."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator

import msgspec

from mooring.api.binding import binding_of
from mooring.api.cdi import ContainerEdits, DeviceNode, Mount
from mooring.hardware.numbers import parse_cpu_list
from mooring.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    RuntimeRefusedError,
    VolumePart,
    check_id,
)
from mooring.node.runtime.shim.launches import Key, Launch, LaunchError, MountLaunch

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFUSED = "CreateContainerError"


def launch_of(
    spec: ContainerSpec, edits: ContainerEdits, *, controllers: Collection[str], is_root: bool
) -> Launch:
    """Return how a container with its edits is started, or raise RuntimeRefusedError.

    `controllers` are those of cgroups that can be used.
    """
    key = key_of(spec.id)
    if not spec.command:
        raise RuntimeRefusedError(
            REFUSED,
            f"container {spec.id.name}: the process runtime has no images, and so no entry point: "
            "set `command`, or use --runtime podman",
        )
    notes = list(_notes(spec, edits, controllers, is_root=is_root))
    environment = _environment(spec, edits)
    binding = binding_of(environment)
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
    )


def key_of(id_: ContainerId) -> Key:
    """Return an id as the keeper has it, or raise RuntimeRefusedError."""
    check_id(id_)
    try:
        return Key.read([id_.pod_uid, id_.name, id_.attempt])
    except LaunchError as error:
        raise RuntimeRefusedError(REFUSED, str(error)) from None


def _environment(spec: ContainerSpec, edits: ContainerEdits) -> dict[str, str]:
    """Return the few variables that all have, those of the container, and those of devices."""
    base = {"PATH": PATH, "HOME": os.environ.get("HOME", "/"), "HOSTNAME": spec.pod_name}
    of_devices = dict(variable.partition("=")[::2] for variable in edits.env)
    environment = {**base, **spec.env, **of_devices}
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            text = (
                f"environment variable {name[:128]!r}: not a name and value that a process can have"
            )
            raise RuntimeRefusedError(REFUSED, text)
    return environment


def _numbers(what: str, lists: tuple[str, ...]) -> tuple[int, ...]:
    """Return the numbers of all lists that devices bind a container to, in order."""
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
    """Yield the device files that are to be seen elsewhere; the others are simply there."""
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
        if kind == "bind" and not os.path.exists(mount.host_path):
            text = f"mount at {mount.container_path}: host path {mount.host_path} does not exist"
            raise RuntimeRefusedError(REFUSED, text)
        if isinstance(mount, VolumePart):
            yield MountLaunch(mount.root, mount.container_path, kind, mount.options, mount.within)
            continue
        is_there = kind == "bind" and mount.host_path == mount.container_path
        if not is_there or "ro" in mount.options:
            yield MountLaunch(mount.host_path, mount.container_path, kind, mount.options)


def _notes(
    spec: ContainerSpec, edits: ContainerEdits, controllers: Collection[str], *, is_root: bool
) -> Iterator[str]:
    """Yield what the container does not get."""
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
