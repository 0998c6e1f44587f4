"""Columns: an expression over many devices gives what it gives for each of them alone."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.resource.v1 import Device
from mooring.cel.columns import COLUMN_ROWS_MIN, Columns
from mooring.cel.device import COST_LIMIT, Compiled, DeviceCompiler, Features
from mooring.cel.fleet import Contents, Fleet, Seen
from mooring.cel.inputs import CELLS
from mooring.cel.lang.attributes import ABSENT, Qualifier
from mooring.cel.lang.cells import longest_cell
from mooring.cel.lang.program import Program
from tests.cel.devices import recorded_variables
from tests.cel.generated import DEVICES, NAME_TERMS, TERMS, expressions
from tests.corpus import corpus

COMPILER = DeviceCompiler(Features(list_attributes=True))

SEEN = st.tuples(st.sampled_from(["d", "e"]), DEVICES, st.booleans())
EXPRESSIONS = expressions(*TERMS, *NAME_TERMS)


def compiled(text: str) -> Compiled:
    found = COMPILER.compile(text)
    assert found.program is not None, found.error
    return found


def answers_agree(expression: Compiled, devices: list[Seen]) -> None:
    """Check the answers of a fleet against those of its devices."""
    found = Fleet(devices).evaluate(expression)
    for position, seen in enumerate(devices):
        alone = seen.content.evaluate(expression)
        error = found.errors.get(position)
        together = (found.values[position], found.costs[position], error)
        assert together == tuple(alone), (expression.expression, position)


def code_agrees(program: Program, devices: list[dict[str, Any]], cost_limit: int) -> None:
    """Check code that reads columns against code that reads variables."""
    assert program.fast is not None
    assert program.many is not None
    columns = Columns([variables["device"] for variables in devices])
    found = program.many.evaluate(columns.batch(program.many.paths), cost_limit)
    for variables, value, cost in zip(devices, *found, strict=True):
        try:
            expected = program.fast(variables, cost_limit)
        except Exception:
            expected = (None, None)  # type: ignore[assignment]
        assert repr((value, cost)) == repr(expected), program.checked


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    text=EXPRESSIONS,
    drawn=st.lists(SEEN, max_size=8),
    copies=st.sampled_from([1, COLUMN_ROWS_MIN]),
)
def test_a_fleet_answers_as_its_devices_do(
    text: str, drawn: list[tuple[str, Device, bool]], copies: int
) -> None:
    contents = [Contents() for _ in range(copies)]  # So many rows, and not one for all copies.
    devices = [
        Seen(driver, "pool", device, each.of(driver, device, with_name=named))
        for each in contents
        for driver, device, named in drawn
    ]
    answers_agree(compiled(text), devices)


@pytest.mark.sweep
def test_code_for_one_and_for_many_agree_on_recorded_expressions() -> None:
    cases = [json.loads(x) for x in corpus("cel", "public.jsonl").read_text().splitlines()]
    shown = {json.dumps(case["device"]): case["device"] for case in cases}
    found = filter(None, map(recorded_variables, shown.values()))
    devices = list(islice(found, 2 * COLUMN_ROWS_MIN))
    assert len(devices) > COLUMN_ROWS_MIN
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


@pytest.mark.parametrize("count", [1, COLUMN_ROWS_MIN])
def test_what_is_absent_is_told_from_what_is_there(count: int) -> None:
    usual, rare = ("device", "attributes", "d", "x"), ("device", "attributes", "d", "y")
    other = ("device", "attributes", "e", "x")
    columns = Columns(rows(*[{"d": {"x": 1}}] * count, {"d": {"x": 2, "y": 3}}, {"e": {"x": 4}}))
    assert list(columns.batch([usual, rare, other])) == [
        *[(1, ABSENT, ABSENT)] * count,
        (2, 3, ABSENT),
        (ABSENT, ABSENT, 4),
    ]
    assert set(columns.batch([("device", "attributes", "unknown", "x")])) == {(ABSENT,)}
    assert list(columns.batch([])) == [()] * (count + 2)


def test_names_of_few_devices_have_no_column() -> None:
    own = [{"d": {"x": 1, f"own{i}": i}} for i in range(2 * COLUMN_ROWS_MIN)]
    columns = Columns(rows(*own))
    table = columns._tables[("device", "attributes", "d")]
    assert list(table._columns or ()) == ["x"]
    assert [value for (value,) in columns.batch([("device", "attributes", "d", "own3")])] == [
        3 if i == 3 else ABSENT for i in range(len(own))
    ]
