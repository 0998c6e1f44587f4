"""Every result as rows, and what pandas and pyarrow make of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pytest
from click.testing import CliRunner

import moorage
from moorage.cli.main import moor
from moorage.library.results import Readable

TRAINING = Path(__file__).parents[2] / "examples" / "training"
GIVEN = ("-f", str(TRAINING), "--profile", "dgx-h100")
SHARED: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "nic"},
    "spec": {
        "driver": "nic.example.com",
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "eth0",
                "attributes": {"speed": {"int": 100}, "model": {"string": "x"}},
                "capacity": {"bandwidth": {"value": "10G"}, "share": {"value": "1500m"}},
            },
            {"name": "eth1", "attributes": {"firmware": {"version": "1.2.0"}}},
        ],
    },
}


@pytest.fixture(scope="module")
def world() -> moorage.World:
    return moorage.load(TRAINING, profile="dgx-h100")


@pytest.fixture(scope="module")
def results(world: moorage.World) -> list[Readable]:
    plan = world.plan()
    explained = plan.pending[0].explain()
    changed = world.what_if(cordon="dgx-h100-0")
    simulated = moorage.simulate(world, [{"arrival": 0, "workload": "pod/notebook-0"}])
    found: list[Readable] = [
        world,
        plan,
        *plan.pods,
        explained,
        *explained.fixes,
        changed,
        *changed.pods,
    ]
    found += [world.fit("deployment/training"), world.devices(), *world.devices()[:2]]
    found += [plan.after.claims(), plan.after.claims()[0], simulated, simulated.chart()]
    found += [moorage.validate(TRAINING), moorage.lint(TRAINING), moorage.profiles()[0]]
    return found


def test_every_result_has_rows_with_the_same_columns_of_plain_values(
    results: list[Readable],
) -> None:
    kinds = {getattr(moorage, name) for name in moorage.__all__}
    concrete = {k for k in kinds if isinstance(k, type) and issubclass(k, Readable)}
    without_sample = {moorage.LintFinding, moorage.Readable, moorage.Record}
    assert {type(each) for each in results} == concrete - without_sample
    for each in results:
        rows = each.rows()
        assert rows or isinstance(each, moorage.Findings)
        assert len({tuple(row) for row in rows}) <= 1, type(each)
        for row in rows:
            assert {type(value) for value in row.values()} <= {str, int, float, bool, type(None)}


@pytest.mark.parametrize("command", ["plan", "explain", "devices", "lint", "validate"])
def test_rows_are_those_that_the_command_prints_as_csv(command: str, world: moorage.World) -> None:
    results: dict[str, Callable[[], Readable]] = {
        "plan": world.plan,
        "explain": lambda: world.plan().explain()[0],
        "devices": world.devices,
        "lint": lambda: moorage.lint(TRAINING, profile="dgx-h100"),
        "validate": lambda: moorage.validate(TRAINING),
    }
    rows = results[command]().rows()
    given = GIVEN[:2] if command == "validate" else GIVEN
    output = CliRunner().invoke(moor, [command, *given, "-o", "csv"]).stdout
    printed = list(csv.DictReader(io.StringIO(output)))
    assert [{name: _text(value) for name, value in row.items()} for row in rows] == printed


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def test_numbers_are_numbers_and_what_a_device_lacks_is_none() -> None:
    rows = moorage.load(SHARED).devices().rows()
    assert (rows[0]["attribute speed"], rows[1]["attribute speed"]) == (100, None)
    assert (rows[0]["capacity bandwidth"], rows[0]["capacity share"]) == (10**10, 1.5)
    assert (rows[0]["attribute firmware"], rows[1]["attribute firmware"]) == (None, "1.2.0")


def test_a_data_frame_of_devices_has_their_columns(world: moorage.World) -> None:
    devices = world.devices()
    frame = pandas.DataFrame(devices)
    assert len(frame) == len(devices)
    assert set(frame.columns) == set(devices.rows()[0])
    assert dict(frame.groupby("driver").size()) == {
        "dra.cpu": 2,
        "dra.net": 12,
        "gpu.nvidia.com": 8,
        "dra.memory": 2,
    }
    memory = frame[frame["driver"] == "gpu.nvidia.com"]["capacity memory"]
    assert memory.sum() == 8 * 81559 * 2**20
    assert pandas.DataFrame(devices.rows()).equals(frame)


def test_arrow_takes_the_rows_of_a_plan(world: moorage.World) -> None:
    table = pyarrow.Table.from_pylist(world.plan().rows())
    assert table.column("pod").to_pylist().count("default/training-0") == 4
    assert pyarrow.types.is_boolean(table.schema.field("admin_access").type)


def test_a_device_is_a_mapping_of_its_row(world: moorage.World) -> None:
    device = world.devices()[0]
    assert dict(device) == device.rows()[0]
    assert device["driver"] == device.driver
    assert device.get("no such column") is None
    assert device == world.devices()[0]
    assert device != dict(device)
