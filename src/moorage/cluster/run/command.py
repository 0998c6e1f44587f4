"""The user's command, run as a child process with the CDI edits of its devices.

It has the terminal, working directory and environment of `moor run`, plus the variables, CPUs,
memory nodes, device files and mounts of its devices, set up by the code that starts containers. It
is killed when `moor run` is: nobody keeps using a device that was released.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import moorage
from moorage.api.cdi import ContainerEdits
from moorage.api.process_binding import CPUS, ITEMS, MEMORY_NODES, process_binding
from moorage.node.runtime.contract import ContainerId, ContainerSpec
from moorage.node.runtime.process.confinement import Agent
from moorage.node.runtime.process.runtime import launch_of
from moorage.node.runtime.shim.container_process import ForkedChild, StartFailure
from moorage.node.runtime.shim.protocol import Launch

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells have it
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from moorage.node.runtime.shim.container_process import run_foreground as main; "
    "main(*map(int, sys.argv[2:5]), sys.argv[5])"
)


class CommandError(Exception):
    """The command cannot be run, with the reason."""

    def __init__(self, text: str, exit_status: int) -> None:
        super().__init__(text)
        self.exit_status = exit_status


class CommandContext(NamedTuple):
    """The working directory, environment and path of a command."""

    environment: Mapping[str, str]
    folder: str  # its working directory
    staging: Path  # an empty folder for mounts


def check_command(command: Sequence[str], path: str | None) -> None:
    """Raise CommandError for a program that does not exist; only starting it makes sure."""
    name = command[0]
    if shutil.which(name, path=path) is not None:
        return
    if os.path.isfile(name) and "/" in name:
        raise CommandError(f"{name}: permission denied", NOT_EXECUTABLE)
    raise CommandError(f"{name}: command not found", NOT_FOUND)


def command_launch(
    command: Sequence[str], edits: ContainerEdits, context: CommandContext
) -> Launch:
    """Return how to launch a command with its devices, or raise RuntimeRefusedError."""
    spec = ContainerSpec(ContainerId("run", "run", 0), "", "", command=("run",))
    launch = launch_of(spec, edits, controllers=(), agent=Agent.current())
    return launch._replace(
        command=tuple(command),
        environment=command_environment(context.environment, edits),
        folder=context.folder,
    )


def command_environment(own: Mapping[str, str], edits: ContainerEdits) -> dict[str, str]:
    """Return the user's environment without affinity variables, plus the devices' variables."""
    of_devices = dict(variable.partition("=")[::2] for variable in edits.env)
    kept = {name: value for name, value in own.items() if not _is_binding(name)}
    return {**kept, **of_devices, **process_binding(of_devices).variables}


def _is_binding(name: str) -> bool:
    return name.startswith((f"{CPUS}_", f"{MEMORY_NODES}_", f"{ITEMS}_"))


async def start_command(launch: Launch, context: CommandContext) -> asyncio.subprocess.Process:
    """Return the running command, or raise CommandError."""
    context.staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    theirs, ours = os.pipe2(os.O_CLOEXEC)
    report, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with report, told:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-c", _PROGRAM, str(Path(moorage.__file__).parents[1])),
                *map(str, (theirs, told.fileno(), os.getpid(), context.staging)),
                pass_fds=(theirs, told.fileno()),
            )
        finally:
            os.close(theirs)
        told.close()
        with open(ours, "w", encoding="utf-8") as file, suppress(BrokenPipeError):
            json.dump(launch.message(), file)
        try:
            failure = await asyncio.to_thread(_heard, process.pid, report)
        except asyncio.CancelledError:  # nobody may use released devices
            process.kill()
            await process.wait()
            raise
    if failure is not None:
        await process.wait()
        raise CommandError(failure.text, _failure_status(failure))
    return process


def _heard(pid: int, report: socket.socket) -> StartFailure | None:
    """Return what failed before the command ran; None once it runs."""
    forked = ForkedChild(pid, -1, report)
    while True:
        heard = forked.receive()
        if heard.namespace is not None:
            os.close(heard.namespace)
        if heard.is_over:
            return heard.failure


def _failure_status(failure: StartFailure) -> int:
    if not failure.is_program:
        return 1  # it could not have what its devices bring
    is_missing = failure.text.endswith(("not found in $PATH", "no such file or directory"))
    return NOT_FOUND if is_missing else NOT_EXECUTABLE


def exit_status(code: int) -> int:
    """Return the exit status of a command as shells report it."""
    return 128 - code if code < 0 else code
