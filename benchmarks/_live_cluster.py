"""A live cluster in processes: the server, the programs beside it, and what each of them takes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SERVER = "import sys; from moorage.cli.main import main; sys.exit(main())"
PROGRAMS = "benchmarks._live_programs"
SAMPLES = "LIVE_SAMPLES"  # the folder for samples of both, see `_live_profile`
READY_S = 60.0


class Usage(NamedTuple):
    """The resources that a process has used so far."""

    cpu_s: float
    peak_mib: float

    @classmethod
    def of(cls, process: int) -> Usage:
        """Return the usage of a process, by its id."""
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{process}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        ticks = int(fields[11]) + int(fields[12])
        return cls(ticks / TICKS_PER_S, int(peak.split()[1]) / 1024)


class Processes(NamedTuple):
    """The processes of a cluster, and the folder of its server."""

    folder: Path
    server: subprocess.Popen[str]
    programs: subprocess.Popen[str] | None  # None: they run in the server's process
    synced_s: float  # from the start of the programs to all kinds being there

    def usages(self) -> tuple[Usage, Usage, Usage]:
        """Return what server, programs and this process have taken."""
        programs = Usage(0.0, 0.0) if self.programs is None else Usage.of(self.programs.pid)
        return Usage.of(self.server.pid), programs, Usage.of(os.getpid())


@asynccontextmanager
async def serving(folder: Path, *, plain: bool) -> AsyncIterator[subprocess.Popen[str]]:
    """Run a server for as long as a block lasts."""
    mode = ("--authorization-mode", "AlwaysAllow") if plain else ()
    command = [*_moor(), "server", "--data-dir", str(folder), "--port", "0"]
    process = start([*command, *mode], subprocess.STDOUT)
    try:
        await line_of(process, "serving at")
        yield process
    finally:
        await stop(process)


@asynccontextmanager
async def control_plane(folder: Path) -> AsyncIterator[subprocess.Popen[str]]:
    """Run server, scheduler and controllers in one process, as `moor up` does, during a block."""
    command = [*_moor(), "control-plane", "--data-dir", str(folder), "--port", "0"]
    process = start(command, subprocess.STDOUT)
    waiting = {"scheduler: scheduling at", "controllers: controlling at"}
    try:
        while waiting:
            line = await line_of(process, tuple(waiting))
            waiting = {each for each in waiting if not line.startswith(each)}
        yield process
    finally:
        await stop(process)


def _moor() -> list[str]:
    """Return the command of `moor`, in a profiler if one is wanted."""
    if profile := os.environ.get("LIVE_SERVER_PROFILE"):
        return [sys.executable, "-m", "cProfile", "-o", profile, "-m", "moorage.cli.main"]
    if samples := os.environ.get(SAMPLES):
        return _sampled(f"{samples}/server.json", "moorage.cli.main")
    return [sys.executable, "-c", SERVER]


@asynccontextmanager
async def programs(folder: Path) -> AsyncIterator[tuple[subprocess.Popen[str], float]]:
    """Run scheduler and controllers for as long as a block lasts, which begins when all is there.

    Given is also how long that took.
    """
    prefix = [sys.executable, "-m", PROGRAMS]
    if samples := os.environ.get(SAMPLES):
        prefix = _sampled(f"{samples}/programs.json", PROGRAMS)
    process = start([*prefix, str(folder)], None)
    try:
        synced_s = float((await line_of(process, "synced")).split()[1])
        yield process, synced_s
    finally:
        await stop(process)


def _sampled(file: str, module: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks._cpu_samples", file, module]


def start(
    command: Sequence[str], errors: int | None, *, new_session: bool = False
) -> subprocess.Popen[str]:
    """Start a command whose output can be read."""
    return subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=new_session,
    )


async def stop(process: subprocess.Popen[str]) -> None:
    """Interrupt a command, and wait until it has ended."""
    process.send_signal(2)
    try:
        await asyncio.to_thread(process.wait, 20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


async def line_of(process: subprocess.Popen[str], beginning: str | tuple[str, ...]) -> str:
    """Return the next line that begins so."""
    assert process.stdout is not None
    async with asyncio.timeout(READY_S):
        while line := await asyncio.to_thread(process.stdout.readline):
            if line.startswith(beginning):
                return line
    raise RuntimeError(f"{process.args!r} ended before it said {beginning!r}")
