"""`mooring.simulate`: traces as files, rows and arrivals; results as rows."""

from __future__ import annotations

import csv
import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import mooring
from mooring.cli.main import moor

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "examples" / "training"
TRACE = ROOT / "examples" / "library" / "trace.csv"


@pytest.fixture(scope="module")
def world() -> mooring.World:
    return mooring.load(TRAINING, profile="dgx-h100")


def test_a_file_rows_and_arrivals_say_the_same(world: mooring.World) -> None:
    rows = list(csv.DictReader(io.StringIO(TRACE.read_text(encoding="utf-8"))))
    arrivals = [
        mooring.Arrival(at_s=0, workload="deployment/training", duration_s=7200, count=2),
        mooring.Arrival(at_s=600, workload="pod/notebook-0", duration_s=2700),
        mooring.Arrival(at_s=1200, workload="deployment/training", duration_s=3600, count=2),
        mooring.Arrival(at_s=5400, workload="pod/notebook-0", duration_s=3600, count=3),
    ]
    traces: list[Any] = [TRACE, str(TRACE), rows, arrivals]
    found = [mooring.simulate(world, trace).to_dict() for trace in traces]
    assert all(each == found[0] for each in found)


def test_a_result_is_that_of_the_command(world: mooring.World) -> None:
    arguments = ["simulate", "-f", str(TRAINING), "--profile", "dgx-h100", "--trace", str(TRACE)]
    done = CliRunner().invoke(moor, [*arguments, "-o", "json"])
    assert mooring.simulate(world, TRACE).to_dict() == json.loads(done.stdout)


def test_rows_are_flat(world: mooring.World) -> None:
    found = mooring.simulate(world, TRACE, sample="30m")
    assert [row["wait_s"] for row in found.rows()] == [each.wait_s for each in found.pods]
    assert len(found.to_csv().splitlines()) == len(found.pods) + 1
    row = found.timeline_rows()[2]
    assert row["at_s"] == 3600
    assert row["waiting"] == 2
    assert row["used gpu.nvidia.com"] == 7  # two workers, and the notebook that is not in the trace
    assert found.summary()["pods"] == 8
    assert [each["workload"] for each in found.workloads()] == [
        "Deployment default/training",
        "Pod default/notebook-0",
    ]
    assert found.mean_wait_s == found.summary()["meanWaitS"]
    assert found.wait_percentile_s(0) == 0


def test_a_simulation_ends_when_it_shall(world: mooring.World) -> None:
    found = mooring.simulate(world, TRACE, until="25m", left_over=False)
    assert found.end_s == 1500
    assert len(found.waiting) == 2
    assert found.waiting[0].wait_s == 300


def test_random_arrivals_are_the_same_for_the_same_seed() -> None:
    def drawn(seed: int) -> list[mooring.Arrival]:
        return mooring.random_arrivals("pod/a", per_hour=10, until="10h", duration="1h", seed=seed)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 60 < len(drawn(1)) < 140
    stays = mooring.random_arrivals("pod/a", per_hour=10, until=3600)
    assert {each.duration_s for each in stays} == {None}


def test_progress_is_reported(world: mooring.World) -> None:
    seen: list[tuple[int, int]] = []
    mooring.simulate(world, TRACE, progress=lambda *each: seen.append(each))
    assert seen[-1] == (8, 8)


@pytest.mark.parametrize(
    ("trace", "error"),
    [
        ("missing.csv", "missing.csv: No such file"),
        ([], "no pods arrive"),
        ([{"arrival": 0}], r"trace\[0\]: no workload"),
        ([{"arrival": 0, "workload": "deployment/trainin"}], "did you mean default/training"),
        ([{"arrival": 0, "workload": "x/y"}], "there is no kind 'x' here"),
    ],
)
def test_what_cannot_be_simulated_is_an_error(world: mooring.World, trace: Any, error: str) -> None:
    with pytest.raises(mooring.MooringError, match=error):
        mooring.simulate(world, trace)


def test_numbers_out_of_range_are_errors(world: mooring.World) -> None:
    trace = [{"arrival": 0, "workload": "deployment/training", "duration": 60}]
    with pytest.raises(mooring.MooringError, match="more than 0 seconds"):
        mooring.simulate(world, trace, sample=0)
    with pytest.raises(mooring.MooringError, match="percent: 195: must be between 0 and 100"):
        mooring.simulate(world, trace).wait_percentile_s(195)


def test_a_world_that_is_none_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="world: expected World, not NoneType None"):
        mooring.simulate(None, [])  # type: ignore[arg-type]


def test_a_simulation_can_be_sent_to_another_process(world: mooring.World) -> None:
    trace = [{"arrival": 0, "workload": "deployment/training", "duration": 60}]
    found = mooring.simulate(world, trace)
    assert pickle.loads(pickle.dumps(found)) == found
