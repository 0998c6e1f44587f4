"""A driver as a program: arguments, error messages, and a clean exit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.apiserver.settings import Settings as ServerSettings
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Create
from moorage.driver.program import main, parser, settings_of
from moorage.driver.scaffold import scaffold
from moorage.driver.serving import serving
from moorage.hardware.attributes import NumaNodeForm
from tests.client.servers import serving as server_at
from tests.driver.stage import (
    NODE,
    Blinkers,
    Kubelet,
    make_claim,
    played,
    published,
    settings_in,
    short_folder,
    until,
)

WAIT_S = 60.0


def test_arguments_and_environment_are_read() -> None:
    environment = {"NODE_NAME": "a", "POD_UID": "uid-1"}
    arguments = ["--metadata", "v1beta1,v1alpha1", "--numa-node", "list", "--cdi-dir", "cdi"]
    found = settings_of(parser(Blinkers(), environment).parse_args(arguments))
    assert (found.node_name, found.pod_uid, found.numa_form) == ("a", "uid-1", NumaNodeForm.LIST)
    assert found.cdi_dir == Path("cdi").absolute()
    assert len(found.metadata) == 2
    found.check()


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--kubeconfig", "missing"], "error: kubeconfig missing: there is no such file\n"),
        (["--metadata", "v1alpha1"], "error: the latest metadata version is"),
        (["--pod-uid", "../x"], "error: '../x' cannot be the UID of a pod\n"),
    ],
)
def test_what_is_wrong_is_told_without_a_traceback(
    arguments: list[str], fact: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(Blinkers(), ["--node-name", NODE, *arguments], {}) == 1
    error = capsys.readouterr().err
    assert error.startswith(fact)
    assert "Traceback" not in error


def test_the_node_must_be_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(Blinkers(), [], {})
    assert caught.value.code == 2
    assert "use --node-name or set NODE_NAME" in capsys.readouterr().err


def test_a_new_driver_runs_publishes_and_stops_at_sigterm() -> None:
    async def play(folder: Path) -> None:
        program = folder / "driver.py"
        program.write_text(scaffold("lamp.example.com")["driver.py"])
        server = ServerSettings(folder / "server", port=0, allows_all=True)
        kubeconfig = folder / "server" / "kubeconfig"
        async with (
            asyncio.timeout(WAIT_S),
            server_at(server),
            http_client(load_rest_config(str(kubeconfig))) as client,
        ):
            await client.write(Create(Node(metadata=ObjectMeta(name=NODE))))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(program), "--kubelet-dir", str(folder / "k")),
                env={**os.environ, "NODE_NAME": NODE, "KUBECONFIG": str(kubeconfig)},
                stderr=asyncio.subprocess.PIPE,
            )

            async def is_published() -> bool:
                return len(await published(client)) == 4

            await until(is_published)
            assert resident_mb(process.pid) <= 80
            process.send_signal(signal.SIGTERM)
            _, error = await process.communicate()
            assert process.returncode == 0, error.decode()
            assert b"Traceback" not in error
            assert list(folder.glob("k/**/*.sock")) == []

    with short_folder() as folder:
        asyncio.run(play(folder))


def resident_mb(pid: int) -> float:
    """Return how much memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@played
async def test_a_new_driver_prepares_claims(folder: Path, client: object) -> None:
    names: dict[str, object] = {"__name__": "lamp"}
    exec(scaffold("lamp.example.com")["driver.py"], names)
    driver = names["Lamp"]()  # type: ignore[operator]
    claim = await make_claim(client, "one", "lamp-0", driver=driver.name)  # type: ignore[arg-type]
    async with serving(driver, settings_in(folder), client) as running:  # type: ignore[arg-type]
        assert running.socket is not None
        (device,) = (await Kubelet(running.socket).prepare(claim))[claim.metadata.uid]
        assert len(device.cdi_device_ids) == 1


@pytest.mark.parametrize("name", ["a.example.com", "9-lives.example.com", "x" * 63, "a-b.c"])
def test_new_drivers_are_programs_of_fewer_than_40_lines(name: str) -> None:
    program = scaffold(name)["driver.py"]
    compile(program, "driver.py", "exec")
    compile(scaffold(name)["test_driver.py"], "test_driver.py", "exec")
    assert len(program.splitlines()) < 40


@pytest.mark.parametrize("name", ["", "Upper.example.com", "a b", "../x", "x" * 64])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a driver"):
        scaffold(name)
