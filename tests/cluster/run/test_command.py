"""A command as a child process, with the CDI edits of its devices."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from moorage.api.cdi import ContainerEdits, Mount
from moorage.cluster.run.command import (
    CommandContext,
    CommandError,
    command_environment,
    command_launch,
    exit_status,
    start_command,
)
from tests.node.runtime.test_process_edits import needs_mounts

CPU = min(os.sched_getaffinity(0))


def run(folder: Path, edits: ContainerEdits, *command: str) -> int:
    """Return how a command ends that runs in a folder."""

    async def act() -> int:
        around = CommandContext(os.environ, str(folder), folder / "staging")
        process = await start_command(command_launch(command, edits, around), around)
        return exit_status(await process.wait())

    return asyncio.run(act())


def ran(folder: Path, edits: ContainerEdits, program: str) -> str:
    """Return what a program of Python writes into a file."""
    file = folder / "written"
    code = f"import os, pathlib; pathlib.Path({str(file)!r}).write_text(str({program}))"
    assert run(folder, edits, sys.executable, "-c", code) == 0
    return file.read_text()


def test_it_has_its_own_variables_and_those_of_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "kept")
    edits = ContainerEdits(env=("OF_DEVICE=given",))
    assert ran(tmp_path, edits, "os.environ['MINE'] + os.environ['OF_DEVICE']") == "keptgiven"


def test_items_of_devices_are_joined_and_bindings_from_outside_do_not_count() -> None:
    outer = {"MOORAGE_CPUSET_outer": "7", "MOORAGE_LIST_x__SEEN": "outer", "PATH": "/bin"}
    edits = ContainerEdits(env=("MOORAGE_LIST_a__SEEN=a", "MOORAGE_LIST_b__SEEN=b"))
    found = command_environment(outer, edits)
    assert (found["SEEN"], found["PATH"]) == ("a,b", "/bin")
    assert "MOORAGE_CPUSET_outer" not in found


def test_it_runs_on_the_cpus_of_its_devices(tmp_path: Path) -> None:
    edits = ContainerEdits(env=(f"MOORAGE_CPUSET_a={CPU}",))
    assert ran(tmp_path, edits, "os.sched_getaffinity(0)") == f"{{{CPU}}}"


@needs_mounts
def test_it_sees_mounts_that_nobody_else_sees(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("of the device")
    target.write_text("of the host")
    edits = ContainerEdits(mounts=(Mount(host_path=str(source), container_path=str(target)),))
    assert ran(tmp_path, edits, f"open({str(target)!r}).read()") == "of the device"
    assert target.read_text() == "of the host"


@pytest.mark.parametrize(
    ("command", "status"), [("no-such-program", 127), ("/etc", 126), ("/no/such", 127)]
)
def test_a_program_that_cannot_run_is_said(tmp_path: Path, command: str, status: int) -> None:
    with pytest.raises(CommandError) as caught:
        run(tmp_path, ContainerEdits(), command)
    assert caught.value.exit_status == status
    assert command in str(caught.value)


def test_cpus_that_are_not_here_are_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be bound to cpus 100000") as caught:
        run(tmp_path, ContainerEdits(env=("MOORAGE_CPUSET_a=100000",)), "true")
    assert caught.value.exit_status == 1


def test_a_large_environment_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        monkeypatch.setenv(f"LARGE_{number}", "x" * 100_000)
    assert ran(tmp_path, ContainerEdits(), "len(os.environ['LARGE_2'])") == "100000"


def test_it_ends_as_shells_tell_it(tmp_path: Path) -> None:
    assert run(tmp_path, ContainerEdits(), "sh", "-c", "exit 5") == 5
    assert run(tmp_path, ContainerEdits(), "sh", "-c", "kill -TERM $$") == 143
