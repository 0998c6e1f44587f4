"""`moor node`: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.cluster import node

UNREACHABLE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(UNREACHABLE)
    return str(path)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(moor, ["node", "--metrics-bind-address", "0", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--node-labels", "zone"], "'zone' is not of the form NAME=VALUE"),
        (["--system-reserved", "memory=much"], "memory: quantities must match"),
        (["--runtime", "docker"], "'docker' is not one of"),
        (["--max-pods", "-1"], "is not in the range"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], fault: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert fault in done.output


def test_a_second_agent_in_a_folder_is_refused(tmp_path: Path, kubeconfig: str) -> None:
    with node.held(tmp_path / "root"):
        done = run("--kubeconfig", kubeconfig, "--root-dir", tmp_path / "root")
    assert done.exit_code == 3
    assert f"error: --root-dir: another agent runs in {tmp_path / 'root'}" in done.output


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, kubeconfig: str) -> None:
    (tmp_path / "file").write_text("")
    done = run("--kubeconfig", kubeconfig, "--root-dir", tmp_path / "file" / "root")
    assert done.exit_code == 3
    assert "error: --root-dir: " in done.output


def test_a_runtime_that_is_not_there_is_named(
    tmp_path: Path, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("--kubeconfig", kubeconfig, "--root-dir", tmp_path, "--runtime", "podman")
    assert done.exit_code == 3
    assert "error: --runtime podman: podman " in done.output


def test_a_server_that_cannot_be_reached_is_named(tmp_path: Path, kubeconfig: str) -> None:
    arguments = ("--runtime", "sim", "--metrics-bind-address", "127.0.0.1:0")
    done = run("--kubeconfig", kubeconfig, "--root-dir", tmp_path, *arguments)
    assert done.exit_code == 3
    assert "error: cannot reach 127.0.0.1:1: " in done.output


def test_a_damaged_checkpoint_is_named(tmp_path: Path, kubeconfig: str) -> None:
    (tmp_path / "dra_manager_state").write_text("{}")
    done = run("--kubeconfig", kubeconfig, "--root-dir", tmp_path, "--runtime", "sim")
    assert done.exit_code == 3
    assert "dra_manager_state" in done.output


def test_credentials_that_lack_a_file_are_named(tmp_path: Path, kubeconfig: str) -> None:
    done = run("--kubeconfig", kubeconfig, "--credentials", tmp_path)
    assert done.exit_code == 3
    assert f"--credentials: {tmp_path}/serving.crt: there is no such file" in done.output
