"""Containers on paper end in time and are found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.cdi import ContainerEdits, DeviceNode
from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.kit.clock import ManualClock
from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    LogRange,
    Phase,
    Runtime,
    RuntimeRefusedError,
)
from moorage.node.runtime.sim import EXITS_WITH, FOREVER, RUNS_FOR, SimRuntime, annotations_for
from tests.node.runtime.contract_suite import MAIN, RuntimeContract, log_of, run, state_of


class SimBench:
    """Paper in a folder, and time that is moved by hand."""

    runs_commands = False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sim" / "containers.json"
        self.clock = ManualClock()

    async def open(self) -> Runtime:
        return SimRuntime(self.path, self.clock)

    async def close(self, runtime: Runtime) -> None:
        assert isinstance(runtime, SimRuntime)
        await runtime.close()

    async def pass_time(self) -> None:
        await self.clock.advance(10)

    def spec(self, id_: ContainerId, script: str, **fields: Any) -> ContainerSpec:
        known = {"image": "busybox:1", "command": ("sh", "-c", script)}
        return ContainerSpec(id_, "default", "pod", **{**known, **fields})


@pytest.fixture
def bench(tmp_path: Path) -> SimBench:
    return SimBench(tmp_path)


class TestSim(RuntimeContract):
    """The contract, on paper."""


@pytest.mark.parametrize(
    ("annotations", "after_s", "code"),
    [
        ({RUNS_FOR: "90s", EXITS_WITH: "2"}, 90, 2),
        ({RUNS_FOR: "90s"}, 90, 0),
        ({RUNS_FOR: "nonsense"}, 30, 0),
    ],
)
def test_annotations_come_before_commands(
    bench: SimBench, annotations: dict[str, str], after_s: float, code: int
) -> None:
    async def main() -> None:
        runtime = await bench.open()
        await runtime.start(bench.spec(MAIN, "sleep 30", annotations=annotations))
        await bench.clock.advance(after_s - 1)
        state = await state_of(runtime, MAIN)
        assert state is not None
        assert state.phase is Phase.RUNNING
        await bench.clock.advance(2)
        state = await state_of(runtime, MAIN)
        assert state is not None
        assert (state.phase, state.exit_code) == (Phase.EXITED, code)

    run(main)


@pytest.mark.parametrize("asked", [FOREVER, "999999999d"])
def test_what_runs_forever_never_ends(bench: SimBench, asked: str) -> None:
    async def main() -> None:
        runtime = await bench.open()
        await runtime.start(bench.spec(MAIN, "true", annotations={RUNS_FOR: asked}))
        await bench.clock.advance(1e6)
        state = await state_of(runtime, MAIN)
        assert state is not None
        assert state.phase is Phase.RUNNING

    run(main)


def test_log_says_what_would_have_run_and_with_what(bench: SimBench) -> None:
    async def main() -> None:
        runtime = await bench.open()
        edits = ContainerEdits(device_nodes=(DeviceNode(path="/dev/x"),))
        await runtime.start(bench.spec(MAIN, "train", edits=edits, cdi_ids=("a.b/c=d",)))
        text = b"simulated: busybox:1 would run sh -c train, with a.b/c=d, /dev/x\n"
        assert await log_of(runtime, MAIN) == text
        assert await log_of(runtime, MAIN, LogRange(tail_lines=0)) == b""

    run(main)


def test_container_that_was_due_meanwhile_ended_when_it_was_due(bench: SimBench) -> None:
    async def main() -> None:
        first = await bench.open()
        started = await first.start(bench.spec(MAIN, "sleep 30"))
        await bench.close(first)
        await bench.clock.advance(3600)
        state = await state_of(await bench.open(), MAIN)
        assert state is not None
        assert state.finished_at is not None
        ran = state.finished_at.instant - started.started_at.instant
        assert ran.total_seconds() == 30

    run(main)


def test_an_unreadable_file_is_reported(bench: SimBench) -> None:
    async def main() -> None:
        bench.path.parent.mkdir()
        bench.path.write_bytes(b"\xff")
        with pytest.raises(RuntimeRefusedError, match="the simulated containers cannot be read"):
            await (await bench.open()).containers()

    run(main)


def test_containers_of_a_pod_run_as_simulated_pods_do() -> None:
    def pod(policy: str) -> Pod:
        inits = [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}]
        spec = {"restartPolicy": policy, "initContainers": inits, "containers": [{"name": "main"}]}
        spec["ephemeralContainers"] = [{"name": "debugger"}]
        metadata = {"name": "pod", "annotations": {RUNS_FOR: "9s", EXITS_WITH: "1"}}
        return decode_tree({"metadata": metadata, "spec": spec}, Pod).value

    assert annotations_for(pod("Never"), "init") == {RUNS_FOR: "0s", EXITS_WITH: "0"}
    assert annotations_for(pod("Never"), "sidecar")[RUNS_FOR] == FOREVER
    assert annotations_for(pod("Never"), "main") == {RUNS_FOR: "9s", EXITS_WITH: "1"}
    assert annotations_for(pod("Always"), "main")[RUNS_FOR] == FOREVER
    assert annotations_for(pod("Always"), "debugger") == {}
