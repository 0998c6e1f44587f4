"""Supervised processes, and the state folder that describes them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from mooring.cluster.state_folder import (
    ClusterState,
    FolderError,
    LogFile,
    ProcessState,
    StateFolder,
)
from mooring.cluster.supervisor import ProcessFailedError, ProcessSpec, Supervisor
from tests.client.servers import until

PYTHON = (sys.executable, "-c")
WORKS = "import time; print('metrics at http://x', flush=True); print('works at last', flush=True);"
STATE = ClusterState(pid=1, began="2026-10-01T12:00:00Z")


def part(name: str, script: str) -> ProcessSpec:
    return ProcessSpec(name, (script,), "works ")


def supervised(folder: StateFolder, told: list[str], *parts: ProcessSpec) -> Supervisor:
    (folder.path / "log").mkdir(parents=True, exist_ok=True)
    return Supervisor(folder, STATE, parts, report=told.append, program=PYTHON)


def test_a_part_that_is_killed_is_started_again_and_that_is_told(tmp_path: Path) -> None:
    folder, told = StateFolder(tmp_path), list[str]()
    supervisor = supervised(folder, told, part("one", WORKS + "time.sleep(600)"))

    async def run() -> None:
        task = asyncio.create_task(supervisor.run(lambda: told.append("all work")))
        await until(lambda: "all work" in told)
        (before,) = supervisor.state.processes
        assert before.metrics == "http://x"
        os.kill(before.pid, signal.SIGKILL)
        await until(lambda: "one is at work again" in told)
        (after,) = supervisor.state.processes
        assert (after.restarts, after.is_working) == (1, True)
        assert after.pid != before.pid
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(ProcessLookupError):
            os.kill(after.pid, 0)

    asyncio.run(run())
    assert told[1] == "one ended (signal 9); it is started again in 0.2 s"
    assert folder.log("one").read_text().count("works at last") == 2
    state = folder.read()
    assert state is not None
    assert state.pid == 0


def test_a_part_that_never_works_ends_the_whole_with_its_last_words(tmp_path: Path) -> None:
    failing = part("two", "import sys; sys.exit('error: the port is taken')")
    parts = part("one", WORKS + "time.sleep(600)"), failing
    supervisor = supervised(StateFolder(tmp_path), [], *parts)
    with pytest.raises(ProcessFailedError, match="two: the port is taken"):
        asyncio.run(supervisor.run())


def test_a_folder_has_one_runner(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "new")
    assert folder.runner() == 0
    with folder.locked():
        assert folder.runner() == os.getpid()
        with pytest.raises(FolderError, match=f"runs here already, as process {os.getpid()}"):
            StateFolder(tmp_path / "new").locked().__enter__()
    assert folder.runner() == 0
    with folder.locked():
        pass


def test_a_record_that_is_broken_is_none(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert folder.read() is None
    (tmp_path / "up.json").write_text("{")
    assert folder.read() is None
    folder.write(ClusterState(pid=1, began="now", processes=(ProcessState("server"),)))
    state = folder.read()
    assert state is not None
    assert not state.is_working


def test_a_log_that_is_large_is_put_aside(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x.log", bytes_max=10)
    for line in (b"one\n", b"two and more\n", b"three\n"):
        log.add(line)
    log.close()
    assert (tmp_path / "x.log.1").read_bytes() == b"one\ntwo and more\n"
    assert (tmp_path / "x.log").read_bytes() == b"three\n"
