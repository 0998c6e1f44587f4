"""Derived attributes that fail on some device, and expressions that do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.resource.v1 import DeviceAttribute
from moorage.cel.lang.interpretable import Failure
from moorage.insight.expressions.derived_repairs import (
    derived_repairs,
    derived_value,
    fault_of,
    has_values,
)
from moorage.insight.expressions.evaluation import ExpressionEvaluator, evaluator_of
from moorage.insight.messages import typed
from tests.insight.fleets import GPU, compiler, device, fleet

NUMA = f'device.attributes["{GPU}"].numa'
PLACE = f'device.attributes["{GPU}"].place'

# Expression, devices, the first repair with lists and without.
REPAIRED: list[tuple[str, list[dict[str, Any]], str, str]] = [
    (NUMA, [{"numa": 1}, {"size": 1}], f"has({NUMA}) ? {NUMA} : []", f"has({NUMA}) ? {NUMA} : -1"),
    (
        PLACE,
        [{"place": "a"}, {"size": 1}],
        f"has({PLACE}) ? {PLACE} : []",
        f'has({PLACE}) ? {PLACE} : "unknown"',
    ),
    (NUMA.replace("numa", "nuna"), [{"numa": 1}], NUMA, NUMA),
    (f'"n" + {NUMA}', [{"numa": 1}], f'"n" + string({NUMA})', f'"n" + string({NUMA})'),
    (
        f"int({NUMA})",
        [{"numa": "1"}, {"numa": "x"}],
        f'{NUMA}.matches("^-?[0-9]+$") ? [int({NUMA})] : []',
        f'{NUMA}.matches("^-?[0-9]+$") ? int({NUMA}) : -1',
    ),
    (
        f'{PLACE}.split("-")[1]',
        [{"place": "a"}, {"place": "a-b"}],
        f'size({PLACE}.split("-")) > 1 ? [{PLACE}.split("-")[1]] : []',
        f'size({PLACE}.split("-")) > 1 ? {PLACE}.split("-")[1] : "unknown"',
    ),
    (
        f"8 / {NUMA}",
        [{"numa": 0}, {"numa": 2}],
        f"({NUMA}) != 0 ? [8 / {NUMA}] : []",
        f"({NUMA}) != 0 ? 8 / {NUMA} : -1",
    ),
]


def evaluator(text: str, *, lists: bool) -> ExpressionEvaluator:
    found = evaluator_of(text, compiler(lists=lists), derived=True)
    assert isinstance(found, ExpressionEvaluator)
    return found


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize(("text", "devices", "with_lists", "without"), REPAIRED)
def test_an_expression_that_fails_is_repaired(
    text: str, devices: list[dict[str, Any]], with_lists: str, without: str, lists: bool
) -> None:
    published = fleet(*(device(f"d{n}", attributes=each) for n, each in enumerate(devices)))
    chosen = compiler(lists=lists)
    found = derived_repairs(evaluator(text, lists=lists), published.devices, published, chosen)
    assert next(found).expression == (with_lists if lists else without)


def test_an_expression_without_a_fault_is_left_alone() -> None:
    published = fleet(device("d", numa=1))
    asked = evaluator(NUMA, lists=True)
    assert fault_of(asked, published.devices) is None
    assert list(derived_repairs(asked, published.devices, published, compiler())) == []


def test_a_guard_that_helps_nobody_is_no_repair() -> None:
    published = fleet(device("d", size=1))
    asked = evaluator(NUMA, lists=True)
    assert list(derived_repairs(asked, published.devices, published, compiler())) == []


VALUES = st.one_of(
    st.none(), st.integers(-1, 2), st.sampled_from(["", "a", "1", "a-b"]), st.just(["a", "b"])
)
TEXTS = st.sampled_from([text for text, *_ in REPAIRED])


@settings(max_examples=200)
@given(
    text=TEXTS,
    lists=st.booleans(),
    values=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4),
)
def test_every_repair_has_a_value_for_every_device(
    text: str, lists: bool, values: list[tuple[Any, Any]]
) -> None:
    devices = [
        device(f"d{n}", attributes={k: v for k, v in (("numa", a), ("place", b)) if v is not None})
        for n, (a, b) in enumerate(values)
    ]
    published = fleet(*devices)
    chosen = compiler(lists=lists)
    asked = evaluator(text, lists=lists)
    for repair in derived_repairs(asked, published.devices, published, chosen):
        assert has_values(repair.expression, published.devices, chosen)
        repaired = evaluator(repair.expression, lists=lists)
        for each in published.devices:
            assert not isinstance(derived_value(repaired, each), Failure)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 (int)"),
        ("0", '"0" (string)'),
        (True, "true (bool)"),
        ((0, 1), "[0, 1] (list of int)"),
        (("0",), '["0"] (list of string)'),
        ((), "[] (empty list)"),
    ],
)
def test_values_are_printed_with_their_types(value: Any, text: str) -> None:
    assert typed(value) == text


def test_versions_are_printed_with_their_type() -> None:
    versioned = device("d")
    versioned.attributes["v"] = DeviceAttribute(version_value="1.2.3")
    (published,) = fleet(versioned).devices
    asked = evaluator(f'device.attributes["{GPU}"].v', lists=True)
    assert typed(derived_value(asked, published)) == "1.2.3 (version)"
