"""`moorage.simulate`: traces as files, rows and arrivals; results as rows."""

from __future__ import annotations

import csv
import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import moorage
from moorage.cli.main import moor

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "examples" / "training"
TRACE = ROOT / "examples" / "library" / "trace.csv"


@pytest.fixture(scope="module")
def world() -> moorage.World:
    return moorage.load(TRAINING, profile="dgx-h100")


def test_a_file_rows_and_arrivals_say_the_same(world: moorage.World) -> None:
    rows = list(csv.DictReader(io.StringIO(TRACE.read_text(encoding="utf-8"))))
    arrivals = [
        moorage.Arrival(at_s=0, workload="deployment/training", duration_s=7200, count=2),
        moorage.Arrival(at_s=600, workload="pod/notebook-0", duration_s=2700),
        moorage.Arrival(at_s=1200, workload="deployment/training", duration_s=3600, count=2),
        moorage.Arrival(at_s=5400, workload="pod/notebook-0", duration_s=3600, count=3),
    ]
    traces: list[Any] = [TRACE, str(TRACE), rows, arrivals]
    found = [moorage.simulate(world, trace).to_dict() for trace in traces]
    assert all(each == found[0] for each in found)


def test_a_result_is_that_of_the_command(world: moorage.World) -> None:
    arguments = ["simulate", "-f", str(TRAINING), "--profile", "dgx-h100", "--trace", str(TRACE)]
    done = CliRunner().invoke(moor, [*arguments, "-o", "json"])
    assert moorage.simulate(world, TRACE).to_dict() == json.loads(done.stdout)


def test_rows_are_flat(world: moorage.World) -> None:
    found = moorage.simulate(world, TRACE, sample="30m")
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


def test_a_simulation_ends_when_it_shall(world: moorage.World) -> None:
    found = moorage.simulate(world, TRACE, until="25m", left_over=False)
    assert found.end_s == 1500
    assert len(found.waiting) == 2
    assert found.waiting[0].wait_s == 300


def test_random_arrivals_are_the_same_for_the_same_seed() -> None:
    def drawn(seed: int) -> list[moorage.Arrival]:
        return moorage.random_arrivals("pod/a", per_hour=10, until="10h", duration="1h", seed=seed)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 60 < len(drawn(1)) < 140
    stays = moorage.random_arrivals("pod/a", per_hour=10, until=3600)
    assert {each.duration_s for each in stays} == {None}


def test_progress_is_reported(world: moorage.World) -> None:
    seen: list[tuple[int, int]] = []
    moorage.simulate(world, TRACE, progress=lambda *each: seen.append(each))
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
def test_what_cannot_be_simulated_is_an_error(world: moorage.World, trace: Any, error: str) -> None:
    with pytest.raises(moorage.MoorageError, match=error):
        moorage.simulate(world, trace)


def test_numbers_out_of_range_are_errors(world: moorage.World) -> None:
    trace = [{"arrival": 0, "workload": "deployment/training", "duration": 60}]
    with pytest.raises(moorage.MoorageError, match="more than 0 seconds"):
        moorage.simulate(world, trace, sample=0)
    with pytest.raises(moorage.MoorageError, match="percent: 195: must be between 0 and 100"):
        moorage.simulate(world, trace).wait_percentile_s(195)


def test_a_world_that_is_none_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="world: expected World, not NoneType None"):
        moorage.simulate(None, [])  # type: ignore[arg-type]


def test_a_simulation_can_be_sent_to_another_process(world: moorage.World) -> None:
    trace = [{"arrival": 0, "workload": "deployment/training", "duration": 60}]
    found = moorage.simulate(world, trace)
    assert pickle.loads(pickle.dumps(found)) == found
