"""Supervised processes, and the state folder that describes them."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path

import pytest

from moorage.cluster import supervisor as supervisor_module
from moorage.cluster.state_folder import (
    ClusterState,
    FolderError,
    LogFile,
    ProcessState,
    StateFolder,
)
from moorage.cluster.supervisor import PartSpec, ProcessFailedError, ProcessSpec, Supervisor
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


def test_parts_of_one_process_have_states_and_logs_of_their_own(tmp_path: Path) -> None:
    folder, told = StateFolder(tmp_path), list[str]()
    lines = (
        "works at last",
        "two: metrics at http://two",
        "two: works",
        "two: restarting: a bug",
        "two: works",
    )
    script = "import time; " + "".join(f"print({line!r}, flush=True); " for line in lines)
    script += "time.sleep(600)"
    spec = ProcessSpec("one", (script,), "works ", (PartSpec("two", "works"),))
    supervisor = supervised(folder, told, spec)

    async def run() -> None:
        task = asyncio.create_task(supervisor.run(lambda: told.append("all work")))
        await until(lambda: "two is at work again" in told and "all work" in told)
        one, two = supervisor.state.processes
        assert one.pid == two.pid
        assert (one.restarts, one.is_working) == (0, True)
        assert (two.restarts, two.is_working, two.metrics) == (1, True, "")
        os.kill(one.pid, signal.SIGKILL)
        await until(lambda: [each.restarts for each in supervisor.state.processes] == [1, 3])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert "two ended (a bug); it is started again" in told
    assert "one, two ended (signal 9); it is started again in 0.2 s" in told
    assert folder.log("one").read_text().splitlines()[0] == "works at last"
    assert folder.log("two").read_text().splitlines()[:2] == ["metrics at http://two", "works"]


def test_a_part_that_never_works_ends_the_whole_with_its_last_words(tmp_path: Path) -> None:
    failing = part("two", "import sys; sys.exit('error: the port is taken')")
    parts = part("one", WORKS + "time.sleep(600)"), failing
    supervisor = supervised(StateFolder(tmp_path), [], *parts)
    with pytest.raises(ProcessFailedError, match="two: the port is taken"):
        asyncio.run(supervisor.run())


def test_nothing_ends_when_state_and_logs_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "REWRITE_S", 0.02)
    folder, told = StateFolder(tmp_path / "data"), list[str]()
    supervisor = supervised(folder, told, part("one", WORKS + "time.sleep(600)"))

    async def run() -> None:
        task = asyncio.create_task(supervisor.run(lambda: told.append("all work")))
        await until(lambda: "all work" in told)
        (tmp_path / "data").rename(tmp_path / "away")
        shutil.rmtree(tmp_path / "away")
        os.kill(supervisor.state.processes[0].pid, signal.SIGKILL)
        await until(lambda: "one is at work again" in told)
        assert not task.done()
        (tmp_path / "data").mkdir()
        await until(lambda: "the state is written again" in told)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    lost = "the log of one cannot be written: No such file or directory"
    assert f"{lost}; its lines are lost meanwhile" in told
    assert any(each.startswith("the state cannot be written: No such file") for each in told)
    state = folder.read()
    assert state is not None
    assert state.processes[0].restarts == 1


def test_a_part_that_cannot_be_started_again_is_tried_until_it_can(tmp_path: Path) -> None:
    told = list[str]()
    program = tmp_path / "program"
    program.symlink_to(sys.executable)
    specs = (ProcessSpec("one", ("-c", WORKS + "time.sleep(600)"), "works "),)
    (tmp_path / "log").mkdir()
    supervisor = Supervisor(
        StateFolder(tmp_path), STATE, specs, report=told.append, program=(str(program),)
    )

    async def run() -> None:
        task = asyncio.create_task(supervisor.run(lambda: told.append("all work")))
        await until(lambda: "all work" in told)
        program.unlink()
        os.kill(supervisor.state.processes[0].pid, signal.SIGKILL)
        await until(lambda: any("No such file" in each for each in told))
        program.symlink_to(sys.executable)
        await until(lambda: "one is at work again" in told)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_what_follows_a_ready_part_must_work_the_first_time(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match=r"^one: No space left on device$"):
        asyncio.run(run_and_kill(tmp_path, [], fails_at=1))


def test_what_follows_a_ready_part_may_fail_later(tmp_path: Path) -> None:
    told = list[str]()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_and_kill(tmp_path, told, fails_at=2))
    assert "one: No space left on device; what was written before is used" in told


async def run_and_kill(path: Path, told: list[str], *, fails_at: int) -> None:
    """Run a part, kill it once it works, and wait until it works again."""
    calls = count(1)

    def on_working(name: str, line: str) -> None:
        if next(calls) == fails_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (path / "log").mkdir()
    spec = part("one", WORKS + "time.sleep(600)")
    supervisor = Supervisor(
        *(StateFolder(path), STATE, (spec,)),
        report=told.append,
        program=PYTHON,
        on_working=on_working,
    )
    task = asyncio.create_task(supervisor.run(lambda: told.append("all work")))
    await until(lambda: "all work" in told or task.done())
    if not task.done():
        os.kill(supervisor.state.processes[0].pid, signal.SIGKILL)
        await until(lambda: "one is at work again" in told)
    task.cancel()
    await task


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


def test_lines_that_a_log_cannot_take_are_counted_and_told_later(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.symlink_to("/dev/full")
    log = LogFile(path)
    log.add(b"one\n")
    log.add(b"two\n")
    assert (log.lost, log.trouble) == (2, "No space left on device")
    path.unlink()
    log.add(b"three\n")
    assert (log.lost, log.trouble) == (0, "")
    path.unlink()
    log.add(b"four\n")  # somebody removed the file: there is a new one
    log.close()
    assert path.read_bytes() == b"four\n"


def test_a_log_says_how_many_lines_it_lost(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.symlink_to("/dev/full")
    log = LogFile(path)
    log.add(b"one\n")
    path.unlink()
    log.add(b"two\n")
    log.close()
    assert path.read_bytes() == b"1 line(s) were lost: No space left on device\ntwo\n"
