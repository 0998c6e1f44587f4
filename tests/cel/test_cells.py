"""Cells: generated code for many devices gives what it gives for each of them alone."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from moorage.cel.device import COST_LIMIT, CelFeatures, Compiled, DeviceCompiler
from moorage.cel.device_values import CELLS
from moorage.cel.lang.attributes import Qualifier, longest_cell
from moorage.cel.lang.program import Program
from tests.cel.devices import batch, recorded_variables
from tests.corpus import corpus

DEVICES_MAX = 32
COMPILER = DeviceCompiler(CelFeatures(list_attributes=True))


def compiled(text: str) -> Compiled:
    found = COMPILER.compile(text)
    assert found.program is not None, found.error
    return found


def code_agrees(program: Program, devices: list[dict[str, Any]], cost_limit: int) -> None:
    """Check code that reads columns against code that reads variables."""
    assert program.fast is not None
    assert program.many is not None
    found = program.many.evaluate(batch(devices, program.many.paths), cost_limit)
    for variables, value, cost in zip(devices, *found, strict=True):
        try:
            expected = program.fast(variables, cost_limit)
        except Exception:
            expected = (None, None)  # type: ignore[assignment]
        assert repr((value, cost)) == repr(expected), program.checked


@pytest.mark.sweep
def test_code_for_one_and_for_many_agree_on_recorded_expressions() -> None:
    cases = [json.loads(x) for x in corpus("cel", "public.jsonl").read_text().splitlines()]
    shown = {json.dumps(case["device"]): case["device"] for case in cases}
    found = filter(None, map(recorded_variables, shown.values()))
    devices = list(islice(found, DEVICES_MAX))
    assert len(devices) == DEVICES_MAX
    limits = {(case["expression"], case.get("cost_limit", COST_LIMIT)) for case in cases}
    seen = 0
    for expression, cost_limit in sorted(limits):
        program = COMPILER.compile(expression, kind="raw").program
        if program is not None and program.many is not None and program.many.paths:
            seen += 1
            code_agrees(program, devices, cost_limit)
    assert seen > 450


# --- paths --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("true", set()),
        ("device.driver == 'd'", {("device", "driver")}),
        ("device == device", {("device",)}),
        ("device.attributes['d'].x == 1", {("device", "attributes", "d", "x")}),
        ("device.attributes['d'].x[0] == 1", {("device", "attributes", "d", "x")}),
        ("has(device.capacity['d'].x)", {("device", "capacity", "d", "x")}),
        ("device.attributes['d'].?x.hasValue()", {("device", "attributes", "d", "x")}),
        ("'d' in device.attributes", {("device", "attributes")}),
        ("device.attributes['d'] == {}", {("device", "attributes")}),
        (
            "device.attributes[device.driver].x == 1",
            {("device", "attributes"), ("device", "driver")},
        ),
        ("[1].exists(device, device == 1)", set()),
    ],
)
def test_code_asks_for_the_paths_that_it_reads(text: str, paths: set[tuple[str, ...]]) -> None:
    program = compiled(text).program
    assert program is not None
    assert program.many is not None
    assert set(program.many.paths) == paths


def test_only_constant_keys_make_a_cell() -> None:
    keys = [Qualifier("attributes"), Qualifier("d"), Qualifier(1)]
    assert longest_cell("device", keys, CELLS) == ("device", "attributes")
    assert longest_cell("other", keys, CELLS) is None


# --- columns ------------------------------------------------------------------------------


def rows(*attributes: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"driver": "d", "attributes": each, "capacity": {}} for each in attributes]
