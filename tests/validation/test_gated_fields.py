"""Fields of disabled features, as the schema declares them."""

from __future__ import annotations

import pytest

from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSliceSpec,
)
from moorage.api.schema import feature_gates
from moorage.validation.gated_fields import disabled_gates, drop_disabled, gated_fields

SLICE = gated_fields(ResourceSliceSpec, "resource/v1.ResourceSliceSpec")
LISTS = Gates(frozenset(Gate) - {Gate.DRA_LIST_TYPE_ATTRIBUTES})
GROUPS = Gates(frozenset(Gate) - {Gate.DRA_DEVICE_COMPATIBILITY_GROUPS})

LISTED = DeviceAttribute(int_values=(1, 2))
PLAIN = DeviceAttribute(string_value="x")


def spec_with(attribute: DeviceAttribute) -> ResourceSliceSpec:
    device = Device(name="a", attributes={"plain": PLAIN, "other": attribute})
    return ResourceSliceSpec(devices=(device,))


def test_fields_deep_inside_are_dropped_while_their_gate_is_off() -> None:
    after = drop_disabled(spec_with(LISTED), None, LISTS, SLICE)
    assert after == spec_with(DeviceAttribute())
    assert list(disabled_gates(spec_with(LISTED), None, LISTS, SLICE)) == [
        Gate.DRA_LIST_TYPE_ATTRIBUTES
    ]


def test_an_empty_list_is_a_value_where_the_default_is_none() -> None:
    after = drop_disabled(spec_with(DeviceAttribute(bool_values=())), None, LISTS, SLICE)
    assert after == spec_with(DeviceAttribute())


def test_fields_stay_if_the_old_object_uses_one_of_the_same_gate() -> None:
    old = spec_with(DeviceAttribute(bool_values=(True,)))
    assert drop_disabled(spec_with(LISTED), old, LISTS, SLICE) == spec_with(LISTED)


def test_an_object_that_uses_no_disabled_feature_is_returned_itself() -> None:
    spec = spec_with(PLAIN)
    assert drop_disabled(spec, None, LISTS, SLICE) is spec
    assert drop_disabled(spec_with(LISTED), None, GROUPS, SLICE) == spec_with(LISTED)


def test_lists_of_structs_are_followed() -> None:
    consumed = DeviceCounterConsumption(counter_set="s", compatibility_groups=("g",))
    spec = ResourceSliceSpec(devices=(Device(name="a", consumes_counters=(consumed,)),))
    after = drop_disabled(spec, None, GROUPS, SLICE)
    assert after.devices is not None
    assert after.devices[0].consumes_counters == (DeviceCounterConsumption(counter_set="s"),)


@pytest.mark.parametrize(
    ("struct", "types"),
    [
        (ResourceSliceSpec, ("ResourceSliceSpec", "Device", "DeviceAttribute", "DeviceCapacity")),
        (ResourceClaimSpec, ("DeviceRequest", "ExactDeviceRequest", "DeviceConstraint")),
        (ResourceClaimStatus, ("ResourceClaimStatus", "DeviceRequestAllocationResult")),
    ],
)
def test_every_gate_of_the_schema_is_found(
    struct: type[ResourceSliceSpec], types: tuple[str, ...]
) -> None:
    found = {each.gates for each in gated_fields(struct, f"resource/v1.{struct.__name__}")}
    declared = {g for name in types for g in feature_gates(f"resource/v1.{name}").values()}
    assert declared <= found
