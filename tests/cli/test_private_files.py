"""What a command writes about a cluster can be read by its owner alone, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import moorage
from moorage.cli import main
from moorage.cli.record import new_recording


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder, in a process that lets everybody read and write what it makes."""
    mask = os.umask(0)
    yield tmp_path
    os.umask(mask)


BUSY = ("--on", "examples/busy-node")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("devices.svg", ("devices", *BUSY, "--picture")),
        ("devices.html", ("devices", *BUSY, "--picture")),
        ("plan.svg", ("plan", *BUSY, "--all", "--picture")),
        ("cluster.tar.gz", ("snapshot", *BUSY, "-o")),
        ("cluster.html", ("snapshot", *BUSY, "--html")),
    ],
)
def test_files_are_for_their_owner(folder: Path, name: str, command: tuple[str, ...]) -> None:
    path = folder / name
    path.touch()  # readable for everybody
    result = CliRunner().invoke(main.moor, (*command, str(path)))
    assert path.stat().st_size, result.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_recordings_are_for_their_owner(folder: Path) -> None:
    path = folder / "night.moorrec"
    with new_recording(path) as file:
        file.write(b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        new_recording(path)


def test_charts_of_the_library_are_for_their_owner(folder: Path) -> None:
    path = folder / "use.svg"
    moorage.chart({"a": [(0, 1), (1, 2)]}, title="use").save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
