"""Resources of running containers of podman: other limits, and what they have used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from moorage.node.errors import RuntimeRefusedError
from moorage.node.runtime.contract import ContainerId, ContainerStats, ResourceLimits
from moorage.node.runtime.podman.client import Podman
from moorage.node.runtime.shim import linux
from moorage.node.runtime.shim.resources import measured

CGROUPS = Path("/sys/fs/cgroup")


async def update_limits(podman: Podman, name: str, limits: ResourceLimits) -> None:
    """Change the limits of a running container, or raise RuntimeRefusedError.

    The server lets no pod drop a limit that it had.
    """
    options = list(_options(limits))
    if options:
        done = await podman.run(["update", *options, name])
        if done.code:
            raise RuntimeRefusedError("ResizeError", f"podman update: {done.why}")


def _options(limits: ResourceLimits) -> Iterator[str]:
    if limits.cpu_millis is not None:
        yield f"--cpus={limits.cpu_millis / 1000:g}"
    if limits.memory_bytes is not None:
        yield f"--memory={limits.memory_bytes}b"


async def pid_of(podman: Podman, name: str) -> int:
    """Return the pid of a container's first process; 0 if it does not run."""
    done = await podman.run(["inspect", "--format={{.State.Pid}}", name])
    text = done.output.decode(errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() else 0


async def stats_of(
    podman: Podman, containers: Sequence[tuple[ContainerId, str]]
) -> list[ContainerStats]:
    """Return what running containers have used, by their names."""
    pids = [(id_, await pid_of(podman, name)) for id_, name in containers]
    return await asyncio.to_thread(_measured, [(id_, pid) for id_, pid in pids if pid])


def _measured(running: Sequence[tuple[ContainerId, int]]) -> list[ContainerStats]:
    found = []
    for id_, pid in running:
        cpu_ns, memory_bytes = measured(_cgroup(pid), partial(linux.tree, [pid]))
        found.append(ContainerStats(id_, cpu_ns, memory_bytes))
    return found


def _cgroup(pid: int) -> str:
    """Return the folder of a process in version 2; "" if there is none of its own."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return ""
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")
    return "" if own in ("", "/") or "/.." in own else f"{CGROUPS}{own}"
