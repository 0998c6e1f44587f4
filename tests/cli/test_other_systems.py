"""On macOS and Windows everything works that needs no node, and the rest says what it needs.

What is tried here is Moorage's own code with what Python lacks there taken away: `other_system`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import urlsplit

import pytest

from moorage.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
STOP_S = 60.0
MACOS, WINDOWS = "macos", "windows"
SYSTEMS = [MACOS, WINDOWS]
NAMES = {MACOS: "macOS", WINDOWS: "Windows: run it in WSL"}

ON_BOARD = ["-f", "training", "--profile", "dgx-h100"]
# What works everywhere, and its exit status.
WORKS: list[tuple[list[str], int]] = [
    (["plan", *ON_BOARD], 1),
    (["explain", "pod/training-1", *ON_BOARD], 1),
    (["fit", "deployment/training", *ON_BOARD], 0),
    (["whatif", *ON_BOARD, "--add-profile", "dgx-h100"], 0),
    (["simulate", *ON_BOARD, "--arrivals", "deployment/training=6/h:45m", "--until", "8h"], 1),
    (["validate", "-f", "training"], 0),
    (["lint", "-f", "training"], 0),
    (["cel", "device.driver == 'gpu.nvidia.com'", "--profile", "dgx-h100"], 0),
    (["schema", "--all", "schemas"], 0),
    (["devices", "--profile", "dgx-h100"], 0),
    (["devices", "--profile", "dgx-h100", "-o", "json"], 0),
    (["claims", *ON_BOARD], 0),
    (["snapshot", "--profile", "dgx-h100", "-o", "fleet.tar.gz"], 0),
    (["devices", "--on", "fleet.tar.gz"], 0),
    (["snapshot", "--profile", "dgx-h100", "--html", "fleet.html"], 0),
    (["metrics", *ON_BOARD], 0),
    (["profiles"], 0),
    (["profiles", "r7725", "--write", "r7725"], 0),
    (["examples"], 0),
    (["completion", "bash"], 0),
    (["driver", "new", "blinker.example.com"], 0),
    (["driver", "classes", "cpu"], 0),
    # There is no cluster to ask, which is no fault.
    (["scheduler", "--kubeconfig", "none"], 3),
    (["controllers", "--kubeconfig", "none"], 3),
    (["devices", "--kubeconfig", "none"], 3),
    (["record", "--kubeconfig", "none", "-o", "a.moorrec"], 3),
    (["kubeconfig"], 3),
    (["ui"], 3),
]
LINUX = [
    ["node", "--kubeconfig", "none"],
    ["run", "--claim", "cpu=1", "--", "true"],
    ["driver", "run", "cpu"],
    ["driver", "check", "driver.py"],
]
POSIX = [
    ["up", "--profile", "dgx-h100"],
    ["status"],
    ["down"],
    ["reset", "--yes"],
    ["server"],
    ["control-plane"],
    ["store", "check"],
    ["store", "compact"],
    ["store", "backup", "store.tar"],
    ["store", "restore", "store.tar"],
]
SUBCOMMANDS = [line[:2] for line in LINUX + POSIX if line[0] in ("driver", "store")]
SERVES = ("up", "server", "control-plane")
HELP = [[*name, "--help"] for name in [*([each] for each in COMMANDS), *SUBCOMMANDS]]
DRIVER = """\
from moorage.driver import Driver, run

class Lamps(Driver):
    name = "lamps.example.com"
    def devices(self): return []
    def prepare(self, claim): return []
    def unprepare(self, claim): pass

run(Lamps())
"""

Results = dict[tuple[str, ...], dict[str, Any]]


def command(system: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.cli.other_system", system, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNDEFAULTENCODING": "1"}


@pytest.fixture(scope="module", params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def results(system: str, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return what all commands come to on a system, one after the other in one process."""
    folder = tmp_path_factory.mktemp(system)
    shutil.copytree(ROOT / "examples" / "training", folder / "training")
    (folder / "store.tar").touch()
    lines = [line for line, _ in WORKS] + LINUX + HELP
    lines += [line for line in POSIX if system == WINDOWS or line[0] not in SERVES]
    done = subprocess.run(
        command(system),
        cwd=folder,
        env=environment(),
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {tuple(line): result for line, result in zip(lines, found, strict=True)}


def test_commands_that_need_no_node_work(results: Results) -> None:
    wrong = [
        (line, found)
        for line, status in WORKS
        if ((found := results[tuple(line)])["fault"], found["status"]) != ("", status)
    ]
    assert wrong == []


def test_no_command_reads_or_writes_text_in_the_encoding_of_the_system(results: Results) -> None:
    assert not [line for line, each in results.items() if "EncodingWarning" in each["output"]]


def test_help_works_everywhere(results: Results) -> None:
    assert not [line for line in HELP if results[tuple(line)]["status"] != 0]


def test_commands_that_need_linux_say_so_in_one_line(system: str, results: Results) -> None:
    for line in LINUX:
        result = results[tuple(line)]
        name = " ".join(line[: 1 + (line[0] == "driver")])
        text = f"error: moor {name} needs Linux, and this is {NAMES[system]}\n"
        assert (result["status"], result["output"]) == (2, text)


def test_servers_with_a_folder_are_run_on_macos_and_not_on_windows(
    system: str, results: Results
) -> None:
    for line in POSIX:
        if system == MACOS:
            assert line[0] in SERVES or results[tuple(line)]["fault"] == ""
            continue
        result = results[tuple(line)]
        name = " ".join(line[: 1 + (line[0] == "store")])
        text = f"error: moor {name} needs Linux or macOS, and this is Windows: run it in WSL\n"
        assert (result["status"], result["output"]) == (2, text)


@contextmanager
def running(folder: Path, *line: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program during a block; it is stopped as from the keyboard, and ends well."""
    with subprocess.Popen(
        line,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        end = Timer(STOP_S, process.kill)
        end.start()
        try:
            yield process
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate()
            assert process.returncode == 0, rest
            assert rest.endswith("stopped\n")
        finally:
            end.cancel()
            process.kill()


def line_of(process: subprocess.Popen[str], pattern: str) -> str:
    """Return what a pattern finds in the first line that has it."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError("".join(seen))


def test_the_page_of_files_is_served_on_windows(tmp_path: Path) -> None:
    with running(tmp_path, *command(WINDOWS, "ui", "--profile", "dgx-h100")) as process:
        link = urlsplit(line_of(process, r"(http://\S+)"))
        connection = HTTPConnection(link.netloc)
        connection.request("GET", f"{link.path}?{link.query}")
        response = connection.getresponse()
        assert (response.status, response.getheader("Location")) == (303, "/ui/")
        connection.close()


def test_macos_runs_a_cluster_of_simulated_nodes_and_windows_uses_it(tmp_path: Path) -> None:
    line = command(MACOS, "control-plane", "--profile", "dgx-h100", "--secure-port", "0")
    with running(tmp_path, *line, "--data-dir", "data") as process:
        line_of(process, r"(controllers: controlling)")
        reading = command(WINDOWS, "devices", "--kubeconfig", "data/kubeconfig", "-o", "name")
        done = subprocess.run(
            reading, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert (done.stderr, done.returncode) == ("", 0)
        assert "device/gpu.nvidia.com/dgx-h100-0/gpu-7" in done.stdout.splitlines()
        options = ["--kubeconfig=data/kubeconfig", "--metrics-bind-address=127.0.0.1:0"]
        options.append("--cert-dir=certificates")
        with running(tmp_path, *command(WINDOWS, "scheduler", *options)) as scheduler:
            link = urlsplit(line_of(scheduler, r"(https://\S+)/metrics"))
            context = ssl._create_unverified_context()
            connection = HTTPSConnection(link.netloc, context=context)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()


def test_a_machine_with_macos_is_no_node(tmp_path: Path) -> None:
    done = subprocess.run(
        command(MACOS, "up"),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "Error: a node of this machine needs Linux, and this is macOS; "
        "--profile simulates nodes, --no-node runs none"
    )


def test_a_driver_says_that_it_needs_linux(system: str, tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(DRIVER, "utf-8")
    code = (
        f"from tests.cli.other_system import become; become({system!r}); "
        "import sys; sys.path.insert(0, '.'); import driver"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--node-name", "a"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    text = f"error: lamps.example.com needs Linux, and this is {NAMES[system]}\n"
    assert (done.returncode, done.stderr) == (2, text)
