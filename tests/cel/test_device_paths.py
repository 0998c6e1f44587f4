"""Devices: direct reads of device fields equal reads through their maps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as changed
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceAttribute, DeviceCapacity
from moorage.cel.device import CelFeatures, Compiled, DeviceCompiler, ExpressionKind
from moorage.cel.device_batch import DeviceBatch
from moorage.cel.device_values import device_variables
from moorage.kit.lru import LRU
from tests.cel.generated import DEVICES, NAME_TERMS, TERMS, expressions
from tests.cel.recorded import cases

# As the scheduler compiles.
COMPILER = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)

DRIVERS = st.sampled_from(["d", "e"])
ODD_TERMS = (
    "device.attributes['d/a'].?b.hasValue()",
    "device.attributes['d']['a/b'] == 1",
    "device.attributes[''].?x.hasValue()",
    "has(device.attributes)",
    "device.?capacity.hasValue()",
    "has(dyn(device).name)",
    "dyn(device).driver == 'd'",
)
ODD_NAMES = st.sampled_from(["d/a/b", "/x", "d/", "a/b"])
ODD_VALUES = st.sampled_from(
    [DeviceAttribute(int_value=1), DeviceAttribute(), DeviceAttribute(version_values=("1.0", "x"))]
)
ODD_DEVICES = st.tuples(DEVICES, st.dictionaries(ODD_NAMES, ODD_VALUES, max_size=2)).map(
    lambda parts: replace(parts[0], attributes={**parts[0].attributes, **parts[1]})
)
FLEETS = st.lists(st.one_of(DEVICES, ODD_DEVICES), max_size=6)


def compiled(text: str, kind: ExpressionKind) -> Compiled:
    found = COMPILER.compile(text, kind=kind)
    assert found.program is not None, found.error
    return found


def alone(expression: Compiled, driver: str, device: Device) -> Any:
    """Return what the expression gives for one device; a text is an error."""
    found = expression.evaluate(
        driver=driver,
        attributes=device.attributes,
        capacity=device.capacity,
        allow_multiple_allocations=device.allow_multiple_allocations,
    )
    return found.value if found.error is None else found.error


def asked(devices: DeviceBatch, expression: Compiled, numbers: Sequence[int]) -> Sequence[Any]:
    if expression.kind == "selector":
        return devices.matches(expression, numbers)
    return devices.attributes(expression, numbers)


# --- all of them ------------------------------------------------------------------------------


@settings(max_examples=120)
@given(
    text=expressions(*TERMS, *ODD_TERMS),
    kind=st.sampled_from(["selector", "derived"]),
    driver=DRIVERS,
    fleet=FLEETS,
    data=st.data(),
)
def test_devices_are_answered_together_as_each_is_alone(
    text: str, kind: ExpressionKind, driver: str, fleet: list[Device], data: st.DataObject
) -> None:
    expression = compiled(text, kind)
    devices = DeviceBatch(driver, fleet)
    expected = [alone(expression, driver, device) for device in fleet]
    some = data.draw(st.lists(st.sampled_from(range(len(fleet))), unique=True)) if fleet else []
    assert asked(devices, expression, some) == [expected[number] for number in some]
    assert asked(devices, expression, range(len(fleet))) == expected
    expensive = changed(expression, cheap_cost_max=-1, answers=LRU(1000))
    assert asked(devices, expensive, range(len(fleet))) == expected
    assert asked(DeviceBatch(driver, fleet[::-1]), expensive, range(len(fleet))) == expected[::-1]


def test_recorded_expressions_are_answered_as_for_each_device_alone() -> None:
    recorded = list(cases())
    fleets = recorded_fleets(case["device"] for case in recorded)
    seen = 0
    texts = sorted({(case["expression"], case["kind"]) for case in recorded})
    for text, kind in texts[::3]:
        expression = COMPILER.compile(text, kind=kind)
        if expression.program is None or kind == "raw" or "device" not in text:
            continue
        seen += 1
        for driver, fleet in fleets.items():
            found = asked(DeviceBatch(driver, fleet), expression, range(len(fleet)))
            expected = [alone(expression, driver, device) for device in fleet]
            assert repr(found) == repr(expected), text
    assert seen > 100


def recorded_fleets(trees: Iterable[dict[str, Any]]) -> dict[str, list[Device]]:
    """Return some of the recorded devices, by driver."""
    shown = {repr(tree): tree for tree in trees}
    fleets: dict[str, list[Device]] = {}
    for tree in islice(shown.values(), 0, None, 40):
        named = {name: value for name, value in tree.items() if name != "driver"}
        device = decode_tree({"name": "one", **named}, Device).value
        fleets.setdefault(tree.get("driver") or "", []).append(device)
    return fleets


# --- what is seen of a device -----------------------------------------------------------------

SHORT, QUALIFIED = DeviceAttribute(string_value="short"), DeviceAttribute(string_value="qualified")


@pytest.mark.parametrize("names", [("x", "d/x"), ("d/x", "x")])
def test_the_qualified_name_counts_whatever_the_order(names: tuple[str, str]) -> None:
    both = {"x": SHORT, "d/x": QUALIFIED}
    attributes = {name: both[name] for name in names}
    assert device_variables("d", attributes, {})["device"]["attributes"] == {
        "d": {"x": "qualified"}
    }
    expression = compiled("device.attributes['d'].x == 'qualified'", "selector")
    assert DeviceBatch("d", [Device(attributes=attributes)]).matches(expression, [0]) == [True]


@pytest.mark.parametrize("names", [("x", "d/x"), ("d/x", "x")])
def test_the_qualified_name_of_a_capacity_counts_too(names: tuple[str, str]) -> None:
    both = {"x": DeviceCapacity(Quantity.parse("1")), "d/x": DeviceCapacity(Quantity.parse("2"))}
    capacity = {name: both[name] for name in names}
    domains = device_variables("d", {}, capacity)["device"]["capacity"]
    assert domains == {"d": {"x": Quantity.parse("2")}}
    expression = compiled("device.capacity['d'].x.isGreaterThan(quantity('1'))", "selector")
    assert DeviceBatch("d", [Device(capacity=capacity)]).matches(expression, [0]) == [True]


def test_a_short_name_belongs_to_the_driver_only() -> None:
    device = Device(attributes={"x": SHORT})
    expression = compiled("has(device.attributes['d'].x)", "selector")
    assert DeviceBatch("d", [device]).matches(expression, [0]) == [True]
    assert DeviceBatch("e", [device]).matches(expression, [0]) == [False]


def test_a_domain_ends_at_the_first_slash() -> None:
    devices = DeviceBatch("d", [Device(attributes={"d/a/b": SHORT})])
    assert devices.matches(compiled("has(device.attributes['d/a'].b)", "selector"), [0]) == [False]
    inner = compiled("device.attributes['d']['a/b'] == 'short'", "selector")
    assert devices.matches(inner, [0]) == [True]


@pytest.mark.parametrize("text", ["has(device.attributes)", "device.?capacity.hasValue()"])
def test_every_device_has_its_maps_empty_or_not(text: str) -> None:
    assert DeviceBatch("d", [Device()]).matches(compiled(text, "selector"), [0]) == [True]


@pytest.mark.parametrize(
    ("attribute", "error"),
    [
        (DeviceAttribute(), "attribute x: unsupported attribute value"),
        (
            DeviceAttribute(version_value="1"),
            "attribute x: parse semantic version: No Major.Minor.Patch elements found",
        ),
    ],
)
def test_a_device_with_a_value_that_is_none_has_no_answer_at_all(
    attribute: DeviceAttribute, error: str
) -> None:
    devices = DeviceBatch("d", [Device(), Device(attributes={"x": attribute})])
    assert devices.matches(compiled("true", "selector"), [0, 1]) == [True, error]
    assert devices.attributes(compiled("1", "derived"), [1]) == [error]


@pytest.mark.parametrize("term", NAME_TERMS)
def test_scheduling_sees_no_names_of_devices(term: str) -> None:
    extended = DeviceCompiler(CelFeatures(list_attributes=True)).compile(term)
    device = Device(name="one")
    assert DeviceBatch("d", [device]).matches(extended, [0]) == [alone(extended, "d", device)]


def test_no_devices_have_no_answers() -> None:
    assert DeviceBatch("d", []).matches(compiled("true", "selector"), []) == []
    assert DeviceBatch("d", [Device()]).attributes(compiled("1", "derived"), []) == []


def test_answers_come_in_the_order_of_the_numbers() -> None:
    devices = DeviceBatch("d", [Device(), Device(allow_multiple_allocations=True)])
    shareable = compiled("device.allowMultipleAllocations", "selector")
    assert devices.matches(shareable, [0, 1]) == [False, True]
    assert devices.matches(shareable, [1, 0]) == [True, False]
    assert devices.matches(shareable, [1, 1, 0]) == [True, True, False]
