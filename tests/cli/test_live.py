"""Commands that look at a cluster can ask a server for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mooring.cli import main
from mooring.client.connecting import find_access, http_client
from mooring.client.writes import Create
from mooring.hardware.catalogue import Catalogue
from tests.apiserver.test_kubectl_server import running


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server with one machine in it."""
    with running(tmp_path_factory.mktemp("server")) as text:
        path = tmp_path_factory.mktemp("client") / "kubeconfig"
        path.write_text(text)
        asyncio.run(_furnish(str(path)))
        yield str(path)


async def _furnish(kubeconfig: str) -> None:
    fleet = Catalogue().fleet("dgx-h100")
    async with http_client(find_access(kubeconfig)) as client:
        for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
            await client.write(Create(each))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.moor, arguments)


def test_devices_are_those_of_the_server(kubeconfig: str) -> None:
    live = run("devices", "--summary", "--kubeconfig", kubeconfig)
    assert live.exit_code == 0, live.output
    assert live.stdout == run("devices", "--summary", "--profile", "dgx-h100").stdout


def test_pods_are_planned_on_the_server_s_nodes(kubeconfig: str) -> None:
    live = run("plan", "-f", "examples/training", "--kubeconfig", kubeconfig)
    assert live.stdout == run("plan", "-f", "examples/training", "--profile", "dgx-h100").stdout


def test_a_cluster_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    result = run("devices", "--kubeconfig", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert "cluster: kubeconfig" in result.stderr
    assert "there is no such file" in result.stderr


def test_a_server_that_does_not_answer_is_unreadable(kubeconfig: str, tmp_path: Path) -> None:
    text = Path(kubeconfig).read_text(encoding="utf-8")
    path = tmp_path / "kubeconfig"
    port = text.split("127.0.0.1:")[1].split()[0].strip('"')
    path.write_text(text.replace(f"127.0.0.1:{port}", "127.0.0.1:1"), encoding="utf-8")
    result = run("devices", "--kubeconfig", str(path))
    assert result.exit_code == 3
    assert "error: cluster: " in result.stderr
