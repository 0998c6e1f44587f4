"""A peer of the live benchmark: loaded as ours is, measured as a whole, and gone afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import live
from benchmarks._live_cluster import Usage
from benchmarks._peer import PeerProcesses, Result, peer, ratio_line
from benchmarks._workloads import Workload

MOORAGE = (sys.executable, "-m", "benchmarks._peer_moorage")
TINY = Workload("tiny", 3, 87.0, None, live.fill)


def test_a_peer_gets_all_pods_and_is_measured_with_all_its_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "LIVE", (TINY,))
    monkeypatch.setattr(live, "loop_seconds", lambda: 0.2)
    found = live.measure("tiny", live.parse_options([]), peer_command=MOORAGE)
    assert found.pods == 8 * TINY.nodes
    assert found.cpu_s[0] > 0.0
    assert found.cpu_s[1] == 0.0
    assert found.peak_mib[0] > 2 * 30, "server and programs are processes of their own"


def test_ours_and_the_peer_take_turns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(work: object, name: str, options: Any, command: tuple[str, ...] = ()) -> Any:
        assert work is live.measure
        assert not options.plain
        asked.append((name, *command))
        cpu_s = (2.0, 0.0, 1.0) if command else (0.4, 0.1, 1.0)
        peak_mib = (1200.0, 0.0, 60.0) if command else (200.0, 100.0, 60.0)
        return live.Figures(100, 2.0 if command else 0.5, [0.1] * 100, cpu_s, peak_mib, 0.2)

    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(live, "_apart", measured)
    live.main(["fill-200", "--runs", "2", "--peer", "start-it", "--now"])
    assert asked == 2 * [("fill-200",), ("fill-200", "start-it", "--now")]
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [each[:10] for each in lines[:-1]] == 2 * ["fill-200  ", "  the peer"]
    assert lines[-1] == (
        "fill-200: ours to the peer's: pods/s 4.00 × (4.00–4.00), p50 1.00 × (1.00–1.00), "
        "CPU a pod 0.25 × (0.25–0.25), memory 0.25 × (0.25–0.25)"
    )


STUBBORN = """
import signal, subprocess, sys, pathlib
signal.signal(signal.SIGINT, lambda *_: sys.exit())
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
pathlib.Path(sys.argv[1], "kubeconfig").touch()
pathlib.Path(sys.argv[1], "child").write_text(str(child.pid))
print("ready", flush=True)
signal.pause()
"""


def test_what_a_peer_leaves_behind_is_ended(tmp_path: Path) -> None:
    async def child() -> int:
        async with peer((sys.executable, "-c", STUBBORN), tmp_path):
            return int((tmp_path / "child").read_text())

    process = asyncio.run(child())
    state = Path(f"/proc/{process}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("text", "cause"),
    [("print('no')", "ended before it said 'ready'"), ("print('ready')", "wrote no kubeconfig")],
)
def test_a_command_that_is_no_peer_is_named(tmp_path: Path, text: str, cause: str) -> None:
    async def started() -> None:
        async with peer((sys.executable, "-c", text), tmp_path):
            pytest.fail("it is no peer")

    with pytest.raises(RuntimeError, match=cause):
        asyncio.run(started())


def test_ratios_are_given_by_their_median() -> None:
    theirs = Result(100.0, 100.0, 20.0, 1200.0)
    pairs = [(theirs._replace(pods_per_s=rate), theirs) for rate in (400.0, 100.0, 300.0)]
    assert ratio_line("x", pairs).startswith("x: ours to the peer's: pods/s 3.00 × (1.00–4.00), ")
    assert ratio_line("x", pairs[:1]) == (
        "x: ours to the peer's: pods/s 4.00 ×, p50 1.00 ×, CPU a pod 1.00 ×, memory 1.00 ×"
    )


def test_usages_put_the_peer_in_the_place_of_the_server() -> None:
    usages = PeerProcesses(session=os.getsid(0)).usages()
    assert len(usages) == 3
    assert usages[0].peak_mib >= usages[2].peak_mib
    assert usages[1] == Usage(0.0, 0.0)
