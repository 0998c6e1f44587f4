"""Resetting a cluster: containers end, and only our own files are deleted."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.cluster.node import held
from moorage.cluster.reset import ResetError, found, reset_cluster
from moorage.cluster.state_folder import StateFolder, short_path
from moorage.node.runtime.contract import ContainerId, ContainerSpec
from moorage.node.runtime.process import ProcessRuntime
from moorage.store.sqlite.database import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("store", "pki", "node", "cdi"):
        (tmp_path / name).mkdir()
    (tmp_path / "kubeconfig").write_text("")
    return tmp_path


def reset(folder: Path, *options: str, typed: str = "") -> Result:
    return CliRunner().invoke(moor, ["reset", "--data-dir", str(folder), *options], input=typed)


def runs(pid: int) -> bool:
    """Return whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_what_is_ours_goes_and_what_is_not_stays(folder: Path) -> None:
    (folder / "mine").write_text("kept")
    result = reset(folder, "--yes")
    assert result.exit_code == 0
    assert f"removed {folder / 'store'}" in result.output
    assert os.listdir(folder) == ["mine"]


def test_an_empty_folder_goes_too_and_then_there_is_nothing(folder: Path) -> None:
    assert reset(folder, "--yes").exit_code == 0
    assert not folder.exists()
    assert reset(folder).output == f"no cluster is in {folder}\n"


def test_it_is_asked_for_first(folder: Path) -> None:
    assert reset(folder, typed="n\n").exit_code == 1
    unanswered = reset(folder)
    assert unanswered.exit_code == 1
    assert "Nothing was removed; --yes removes without a question." in unanswered.output
    assert "store" in found(folder)
    assert reset(folder, typed="y\n").exit_code == 0


def test_a_cluster_that_runs_stays(folder: Path) -> None:
    with StateFolder(folder).locked():
        result = reset(folder, "--yes")
    assert result.exit_code == 3
    assert "`moor down` stops it" in result.stderr
    assert "store" in found(folder)


def test_the_store_of_a_server_that_runs_alone_stays(folder: Path) -> None:
    with Folder(folder / "store"), pytest.raises(ResetError, match="in use by process"):
        asyncio.run(reset_cluster(folder))
    assert "store" in found(folder)


def test_the_folder_of_an_agent_that_runs_stays(folder: Path) -> None:
    with held(folder / "node"), pytest.raises(ResetError, match="another agent runs"):
        asyncio.run(reset_cluster(folder))
    assert "node" in found(folder)


def test_the_short_link_goes(folder: Path) -> None:
    link = short_path(folder / "node")
    assert link in asyncio.run(reset_cluster(folder))
    assert not link.is_symlink()


def test_containers_that_were_left_end(folder: Path) -> None:
    async def leave_and_reset() -> int:
        runtime = ProcessRuntime(folder / "node" / "containers")
        spec = ContainerSpec(ContainerId("p", "c", 0), "", "p", command=("sleep", "1000"))
        await runtime.start(spec)
        keeper = await runtime.shim_pid()
        await runtime.close()
        await reset_cluster(folder)
        return keeper

    keeper = asyncio.run(leave_and_reset())
    assert not runs(keeper)
