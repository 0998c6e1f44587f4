"""Devices that are called plainly good break no rule; most that break none are called so."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.field_path import root
from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaint,
)
from moorage.api.timestamp import Timestamp
from moorage.validation.errors import ErrorList
from moorage.validation.field_rules import duplicates
from moorage.validation.plain_devices import UncheckedFields, are_plainly_good, name_no_nodes
from moorage.validation.slice_device import validate_device, validate_device_nodes
from moorage.validation.strategy import Context
from tests.strategies import instances

DEVICES = root("devices")
CONTEXT = Context(gates=Gates.parse(), now=Timestamp(datetime(2026, 1, 1, tzinfo=UTC)))

GOOD = Device(
    name="gpu-0",
    attributes={
        "model": DeviceAttribute(string_value="H200"),
        "example.com/index": DeviceAttribute(int_value=0),
        "healthy": DeviceAttribute(bool_value=False),
        "driver": DeviceAttribute(version_value="1.2.3"),
    },
    capacity={"memory": DeviceCapacity(value=Quantity.parse("141Gi"))},
)

texts = st.sampled_from(["", "a", "x" * 64, "x" * 65, "ü" * 32, "ü" * 33, "1.2.3", "1.2"])
attributes = st.builds(
    DeviceAttribute,
    int_value=st.none() | st.integers(-5, 5),
    bool_value=st.none() | st.none() | st.booleans(),
    string_value=st.none() | texts,
    version_value=st.none() | st.none() | texts,
    string_values=st.sampled_from([None, None, None, (), ("a",)]),
    int_values=st.sampled_from([None, None, None, (), (1,)]),
)
keys = st.sampled_from(["a", "B_c", "example.com/a", "Example.com/a", "a-b", "/a", "x" * 33, ""])
devices = st.builds(
    Device,
    name=st.sampled_from(["a", "b", "c", "B", "a.b", ""]),
    attributes=st.dictionaries(keys, attributes, max_size=3),
    capacity=st.dictionaries(keys, st.just(DeviceCapacity()), max_size=2),
    taints=st.sampled_from([(), (), (), (DeviceTaint(),)]),
)


def careful(found: tuple[Device, ...]) -> ErrorList:
    errors = duplicates(found, lambda device: device.name, DEVICES)
    for device in found:
        errors += validate_device(device, None, DEVICES, CONTEXT)
    return errors


@settings(max_examples=500)
@given(st.lists(devices | instances(Device), max_size=3).map(tuple))
def test_plainly_good_devices_break_no_rule(found: tuple[Device, ...]) -> None:
    if are_plainly_good(found):
        assert careful(found) == []
    if name_no_nodes(found):
        assert not any(validate_device_nodes(d, DEVICES, per_device=None) for d in found)


def test_common_devices_are_plainly_good() -> None:
    found = tuple(replace(GOOD, name=f"gpu-{index}") for index in range(128))
    assert are_plainly_good(found)
    assert careful(found) == []


@pytest.mark.parametrize(
    "device",
    [
        replace(GOOD, name="GPU"),
        replace(GOOD, taints=(DeviceTaint(key="a", effect="NoSchedule"),)),
        replace(GOOD, binding_conditions=("a",)),
        replace(GOOD, attributes={"a": DeviceAttribute()}),
        replace(GOOD, attributes={"a": DeviceAttribute(int_value=1, string_value="a")}),
        replace(GOOD, attributes={"a": DeviceAttribute(int_value=1, version_value="1.2.3")}),
        replace(GOOD, attributes={"a": DeviceAttribute(int_value=1, bool_value=True)}),
        replace(GOOD, attributes={"a": DeviceAttribute(string_value="x" * 65)}),
        replace(GOOD, attributes={"a": DeviceAttribute(string_value="ü" * 33)}),
        replace(GOOD, attributes={"a": DeviceAttribute(version_value="1.2")}),
        replace(GOOD, attributes={"a": DeviceAttribute(string_value="a", int_values=(1,))}),
        replace(GOOD, attributes={"a b": DeviceAttribute(int_value=1)}),
        replace(GOOD, attributes={f"a{n}": DeviceAttribute(int_value=1) for n in range(32)}),
        replace(
            GOOD, capacity={"a": DeviceCapacity(request_policy=CapacityRequestPolicy())}
        ),
    ],
)  # fmt: skip
def test_what_may_break_a_rule_is_not_plainly_good(device: Device) -> None:
    assert not are_plainly_good((device,))


def test_devices_of_one_name_are_not_plainly_good() -> None:
    assert not are_plainly_good((GOOD, GOOD))


@pytest.mark.parametrize("device", [replace(GOOD, node_name=""), replace(GOOD, all_nodes=False)])
def test_a_device_that_speaks_of_nodes_is_seen(device: Device) -> None:
    assert name_no_nodes((GOOD,))
    assert not name_no_nodes((GOOD, device))


def test_a_device_with_a_field_that_nothing_checks_is_not_plain() -> None:
    fields = UncheckedFields.of(Device, lambda device: (device,), "name attributes capacity")
    assert fields is not None
    assert not fields.used_by((GOOD,))
    assert fields.used_by((GOOD, replace(GOOD, binds_to_node=False)))


def test_attributes_and_capacities_may_have_unchecked_fields_too() -> None:
    fields = UncheckedFields.of(
        DeviceAttribute, lambda device: device.attributes.values(), "string_value bool_value"
    )
    assert fields is not None
    assert fields.used_by((GOOD,))
    assert not fields.used_by((replace(GOOD, attributes={}),))


def test_every_field_is_checked_today() -> None:
    assert UncheckedFields.of(DeviceCapacity, lambda device: (), "value request_policy") is None
