"""`moor run` in a cluster of processes, with the CPUs and memory of this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moorage.api.core import Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim
from moorage.cli.run import Signals
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Delete, Target
from moorage.cluster.run.holder_pod import following

TIMEOUT_S = 150
WAIT_S = 60.0
UNTIL_STOPPED = "trap 'exit 7' TERM; trap 'exit 8' INT; echo ready; while :; do sleep 0.05; done"


def moor(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "moorage.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=cwd,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster that runs, by its folder."""
    path = tmp_path_factory.mktemp("cluster")
    place = ("--data-dir", str(path))
    started = moor("up", *place, "--port", "0", "--drivers", "cpu,memory", "--detach")
    assert started.returncode == 0, started.stderr
    try:
        yield path
    finally:
        moor("down", *place)
        moor("reset", *place, "--yes")


def run(folder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return moor("run", "--data-dir", str(folder), *arguments, cwd=cwd)


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Let programs be interrupted that are started here, also when the tests ignore that.

    Shells ignore interrupts for what they start in the background.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def begun(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Give a run whose command has said that it is ready."""
    words = ("run", "--data-dir", str(folder), *arguments, "--", "sh", "-c", UNTIL_STOPPED)
    command = [sys.executable, "-m", "moorage.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def left(folder: Path) -> int:
    """Return how many objects there are that a run makes."""

    async def count() -> int:
        async with http_client(load_rest_config(str(folder / "kubeconfig"))) as client:
            pages = [await client.list(struct, "default") for struct in (Pod, ResourceClaim)]
            return sum(len(page.values) for page in pages)

    return asyncio.run(count())


def in_use(folder: Path) -> int:
    told = moor("status", "--data-dir", str(folder), "-o", "json").stdout
    return int(json.loads(told)["overview"]["devices_in_use"])


def test_a_command_runs_on_the_cpus_that_it_got_and_gives_them_back(
    folder: Path, tmp_path: Path
) -> None:
    text = "import os; print(len(os.sched_getaffinity(0)), os.getcwd()); raise SystemExit(5)"
    words = ("--claim", "cpu=1,memory=1Mi", "--match", "numaNode", "--", sys.executable, "-c", text)
    done = run(folder, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (5, f"1 {tmp_path}\n"), done.stderr
    assert "cpu: dra.cpu/" in done.stderr
    assert left(folder) == 0
    assert in_use(folder) == 0


def test_a_wish_that_cannot_be_met_is_refused_with_its_reason(folder: Path) -> None:
    done = run(folder, "--claim", "cpu=100000", "--timeout", "1s", "true")
    assert done.returncode == 1
    assert "waiting: request cpu" in done.stderr
    assert "Fix: ask for " in done.stderr
    assert "error: no devices within 1 s" in done.stderr
    assert left(folder) == 0


def test_nobody_else_gets_what_a_run_has(folder: Path) -> None:
    with begun(folder, "--claim", "cpu=1", "--quiet") as process:
        assert in_use(folder) == 1
        # All CPUs of the machine are one more than are left.
        cpus = os.cpu_count() or 1
        assert run(folder, "--claim", f"cpu={cpus}", "--timeout", "1s", "true").returncode == 1
        process.terminate()
        assert process.wait(WAIT_S) == 7


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 7), (signal.SIGINT, 8)])
def test_a_signal_is_the_commands(folder: Path, number: signal.Signals, status: int) -> None:
    with begun(folder, "--claim", "cpu=1", "--quiet") as process:
        process.send_signal(number)
        assert process.wait(WAIT_S) == status
    assert left(folder) == 0


def test_a_signal_while_the_command_is_started_is_the_commands_too() -> None:
    cancelled: list[bool] = []
    signals = Signals(lambda: cancelled.append(True))
    signals.hold()
    signals.got(signal.SIGTERM)  # the command runs by now, and we do not know it yet
    assert not cancelled
    with subprocess.Popen(
        ["sh", "-c", UNTIL_STOPPED], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        signals.pass_on_to(process.pid)
        assert process.wait(WAIT_S) == 7
    signals.ignore()
    signals.got(signal.SIGTERM)
    assert not cancelled


def test_a_start_that_hangs_is_ended_by_the_second_signal() -> None:
    cancelled: list[bool] = []
    signals = Signals(lambda: cancelled.append(True))
    signals.hold()
    signals.got(signal.SIGTERM)
    signals.got(signal.SIGINT)
    assert cancelled == [True]
    assert signals.last == signal.SIGINT


@pytest.mark.parametrize(("ignored", "left"), [("QUIT", 0), ("HUP", 1), ("INT USR1", 0)])
def test_a_command_ignores_no_signal_but_that_of_nohup(
    folder: Path, ignored: str, left: int
) -> None:
    words = ("run", "--data-dir", str(folder), "--claim", "cpu=1", "--quiet", "--")
    moor = shlex.join([sys.executable, "-m", "moorage.cli.main", *words])
    look = "grep SigIgn /proc/self/status"
    script = f"trap '' {ignored}; exec {moor} {look}"
    # The tests may run in the background themselves, where signals are ignored already.
    command = ["env", "--default-signal", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1], 16) == left


def test_devices_of_a_run_that_was_killed_come_free(folder: Path) -> None:
    async def until_free() -> None:
        async with http_client(load_rest_config(str(folder / "kubeconfig"))) as client:
            (claim,) = (await client.list(ResourceClaim, "default")).values
            name = claim.metadata.name
            async for each in following(client, ResourceClaim, "default", name):
                if each is None or each.status.allocation is None:
                    return

    with begun(folder, "--claim", "cpu=1", "--quiet") as process:
        process.kill()
    asyncio.run(asyncio.wait_for(until_free(), WAIT_S))
    assert run(folder, "--claim", "cpu=1", "--quiet", "true").returncode == 0
    assert left(folder) == 0  # the next run takes away what was left


def test_a_command_that_ends_by_a_signal_is_told_as_shells_do(folder: Path) -> None:
    done = run(folder, "--claim", "cpu=1", "-q", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("--claim", "gpux=1", "true"), 2, "no class of devices 'gpux'"),
        (("--claim", "cpu=1", "--match", "numaNod", "true"), 2, "did you mean"),
        (("--claim", "cpu=1", "--selector", "cpu=device.foo", "true"), 2, "undefined field"),
        (("--claim", "cpu=1"), 2, "Missing argument"),
        (("--claim", "cpu=1", "no-such-program"), 127, "no-such-program: command not found"),
        (("--claim", "cpu=1", "/etc/passwd"), 126, "/etc/passwd: permission denied"),
    ],
)
def test_bad_input_is_refused_before_anything_is_made(
    folder: Path, words: tuple[str, ...], status: int, text: str
) -> None:
    done = run(folder, *words)
    assert done.returncode == status
    assert text in done.stderr
    assert left(folder) == 0


@pytest.mark.parametrize(
    ("word", "texts"),
    [
        (
            "mig",
            (
                "error: mig: the cluster has no DeviceClass mig.nvidia.com",
                "it comes with the driver nvidia, which does not run",
                "start it with: moor driver run nvidia --node-name ",
                "or the cluster: moor up --drivers cpu,memory,nvidia",
                "what can be asked for: cpu,",
            ),
        ),
        (
            "tpu",
            (
                "error: tpu: the cluster has no DeviceClass tpu.google.com",
                "no driver of Moorage makes it",
                "what can be asked for: cpu,",
            ),
        ),
    ],
)
def test_a_class_that_nobody_has_made_is_said_first_and_how_to_get_it(
    folder: Path, word: str, texts: tuple[str, ...]
) -> None:
    done = run(folder, "--claim", f"{word}=1", "true")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(texts)
    for line, text in zip(lines, texts, strict=True):
        assert line.strip().startswith(text)
    assert left(folder) == 0


@contextmanager
def driven(folder: Path, name: str, kubeconfig: Path) -> Iterator[Iterator[str]]:
    """Give what a driver says that somebody has started by hand."""
    (node,) = (path.name.removeprefix("node-") for path in (folder / "pki").glob("node-*"))
    place = ("--kubelet-dir", str(folder / "node"), "--cdi-dir", str(folder / "cdi"))
    words = ("driver", "run", name, "--node-name", node, *place, "--kubeconfig", str(kubeconfig))
    command = [sys.executable, "-m", "moorage.cli.main", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield iter(process.stderr)
        finally:
            process.terminate()


def test_a_driver_that_is_started_by_hand_makes_its_classes(folder: Path) -> None:
    async def arrives() -> None:
        async with (
            asyncio.timeout(WAIT_S),
            http_client(load_rest_config(str(folder / "kubeconfig"))) as client,
        ):
            async for found in following(client, DeviceClass, "", "dra.nvme"):
                if found is not None:
                    break
            await client.write(Delete(Target(DeviceClass, "", "dra.nvme")))

    with driven(folder, "nvme", folder / "kubeconfig"):
        asyncio.run(arrives())


def test_a_driver_that_may_not_make_its_classes_says_who_can(folder: Path) -> None:
    (credentials,) = (folder / "pki").glob("node-*")
    with driven(folder, "nvidia", credentials / "kubeconfig") as lines:
        note = next(line for line in lines if line.startswith("note:"))
    assert "pods need the DeviceClasses gpu.nvidia.com, mig.nvidia.com, vfio.gpu.nvidia.com" in note
    assert "cannot create resource" in note
    assert note.endswith("moor driver classes nvidia | kubectl apply -f -\n")


def test_a_dry_run_prints_and_makes_nothing(folder: Path) -> None:
    done = run(folder, "--claim", "cpu=1", "--dry-run", "true")
    assert done.returncode == 0
    assert "kind: ResourceClaim" in done.stdout
    assert left(folder) == 0


def test_without_a_cluster_it_is_said_how_to_get_one(tmp_path: Path) -> None:
    done = run(tmp_path, "--claim", "cpu=1", "true")
    assert done.returncode == 3
    assert "`moor up --detach` starts one" in done.stderr


def test_a_second_agent_is_refused(folder: Path) -> None:
    (credentials,) = (folder / "pki").glob("node-*")
    words = ("--node-name", "other", "--credentials", str(credentials))
    done = moor("node", *words, "--root-dir", str(folder / "node"))
    assert done.returncode == 3
    assert "another agent runs in" in done.stderr


def test_the_node_is_shown(folder: Path) -> None:
    shown = moor("status", "--data-dir", str(folder))
    assert shown.returncode == 0
    assert "process runtime; drivers: cpu, memory" in shown.stdout
    (options,) = re.findall("for drivers of your own: (.*)", shown.stdout)
    names = [word for word in options.split() if word.startswith("-")]
    assert names == ["--node-name", "--kubelet-dir", "--cdi-dir", "--kubeconfig"]
    assert "dra.cpu 0/" in shown.stdout
