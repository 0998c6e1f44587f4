"""Real processes for tests: a runtime in a folder of its own, and ways to wait for what happens."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import zlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from moorage.api.cdi import ContainerEdits
from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    ContainerState,
    LogRange,
    Phase,
    ResourceLimits,
)
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.shim import linux

STORY_S_MAX = 60.0
EXIT_MS_MAX = 10_000
FOREVER = "exec sleep 1000000"

Story = Callable[[ProcessRuntime], Awaitable[None]]


class Bench:
    """A folder for a runtime, and what is left when its story is over."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cdi = root / "cdi"
        self.options: dict[str, Any] = {"idle_s": 30.0}

    def runtime(self) -> ProcessRuntime:
        return ProcessRuntime(self.root, [self.cdi], shim_options=self.options)

    def play(self, story: Story) -> None:
        """Let a story happen; then nothing of it is left, or the test fails."""

        async def run() -> None:
            runtime = self.runtime()
            async with asyncio.timeout(STORY_S_MAX):
                try:
                    await story(runtime)
                finally:
                    await runtime.shut_down()

        asyncio.run(run())
        self.wait_for_keeper()
        assert self.members() == []
        assert not [each for each in linux.children(os.getpid()) if is_zombie(each)]
        assert self.faults() == ""

    def wait_for_keeper(self) -> None:
        wait_for_exit(int((self.root / "keeper.pid").read_text()))

    def members(self) -> list[int]:
        mark = f"@{zlib.crc32(str(self.root.resolve()).encode()):08x}"
        return [each.pid for each in linux.processes() if linux.marker(each.pid).endswith(mark)]

    def faults(self) -> str:
        return (self.root / "keeper.log").read_text()

    def record(self, id_: ContainerId) -> dict[str, Any]:
        tree: dict[str, Any] = json.loads((self.folder(id_) / "record").read_text())
        return tree

    def folder(self, id_: ContainerId) -> Path:
        return self.root / "containers" / id_.pod_uid / id_.name / str(id_.attempt)


def wait_for_exit(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(EXIT_MS_MAX), f"process {pid} does not end"
    os.close(descriptor)


def is_zombie(pid: int) -> bool:
    found = linux.process(pid)
    return found is not None and found.is_zombie


def id_of(name: str, *, pod: str = "pod-1", attempt: int = 0) -> ContainerId:
    return ContainerId(pod, name, attempt)


def shell(
    name: str,
    script: str,
    *,
    id_: ContainerId | None = None,
    edits: ContainerEdits | None = None,
    **more: Any,
) -> ContainerSpec:
    """Return a container that runs a script."""
    return ContainerSpec(
        id_ or id_of(name),
        namespace="default",
        pod_name="web",
        command=("/bin/sh", "-c"),
        args=(script,),
        edits=edits or ContainerEdits(),
        **more,
    )


def python(name: str, program: str, *, limits: ResourceLimits | None = None) -> ContainerSpec:
    """Return a container that runs a program in Python."""
    command = (sys.executable, "-I", "-S", "-c", program)
    limits = limits or ResourceLimits()
    return ContainerSpec(id_of(name), "default", "web", command=command, limits=limits)


async def ended(runtime: ProcessRuntime, id_: ContainerId) -> ContainerState:
    """Return how a container ended, once it has."""
    changes = runtime.changes()
    for state in await runtime.containers():
        if state.id == id_ and state.phase is Phase.EXITED:
            return state
    async for state in changes:
        if state.id == id_ and state.phase is Phase.EXITED:
            return state
    raise AssertionError("changes never end")


async def finished(runtime: ProcessRuntime, spec: ContainerSpec) -> ContainerState:
    """Return how a container ended that is started now."""
    await runtime.start(spec)
    return await ended(runtime, spec.id)


async def said(runtime: ProcessRuntime, id_: ContainerId, word: str) -> str:
    """Return what a container said, once it has said a word."""
    heard = ""
    async for part in runtime.logs(id_, LogRange(follow=True)):
        heard += part.decode()
        if word in heard:
            return heard
    raise AssertionError(f"{word!r} is not in {heard!r}")


async def output(
    runtime: ProcessRuntime, id_: ContainerId, log_range: LogRange | None = None
) -> str:
    parts = [part async for part in runtime.logs(id_, log_range or LogRange())]
    return b"".join(parts).decode()


async def told_by(runtime: ProcessRuntime, spec: ContainerSpec) -> str:
    """Return all that a container says that is started now."""
    await finished(runtime, spec)
    return await output(runtime, spec.id)


async def executed(
    runtime: ProcessRuntime, id_: ContainerId, command: Sequence[str], *, given: bytes | None = None
) -> tuple[int, bytes, bytes]:
    """Return the exit code, the output and the errors of a command in a container."""
    session = await runtime.execute(id_, command, tty=False, stdin=given is not None)
    streams = {1: bytearray(), 2: bytearray()}

    async def give() -> None:
        if given is not None:
            await session.write(given)
            await session.close_input()

    giving = asyncio.create_task(give())
    async for channel, data in session.output():
        streams[channel] += data
    await giving
    return await session.wait(), bytes(streams[1]), bytes(streams[2])
