"""A derived attribute decides as a published one with the same values does."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from moorage.allocator import Allocated, AllocationOutcome, Inventory, allocate
from moorage.allocator.rules.constraints import AttributeTable
from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceConstraint,
    DeviceDerivedAttribute,
)
from moorage.cel.device import CelFeatures, DeviceCompiler
from tests.allocator.problems.parts import claim, class_, request, slice_
from tests.allocator.scenes import DRIVER
from tests.scheduler.makers import node

KEY, MADE = f"{DRIVER}/root", "derived.example.com/root"
ROOT = f'device.attributes["{DRIVER}"].root'

texts = st.sampled_from(["a", "b", "c"]).map(lambda text: DeviceAttribute(string_value=text))
odd = st.sampled_from(
    [
        DeviceAttribute(int_value=1),
        DeviceAttribute(bool_value=True),
        DeviceAttribute(version_value="1.0.0"),
        DeviceAttribute(string_values=("a", "b")),
        DeviceAttribute(int_values=(1, 2, 3, 4, 5, 6)),
        None,
    ]
)
roots = st.lists(texts, max_size=8) | st.lists(texts | odd, max_size=8)


def answer(
    found: list[DeviceAttribute | None], count: int, constraint: str, *, derived: bool
) -> AllocationOutcome:
    """Return what a claim for devices with a common, or distinct, root gets."""
    devices = [
        Device(name=f"dev-{number}", attributes={} if each is None else {"root": each})
        for number, each in enumerate(found)
    ]
    inventory = Inventory(
        compiler=DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
    )
    inventory.put_slice(slice_("slice", DRIVER, devices, node_name="n"))
    inventory.put_class(class_("gpu", "true"))
    more: Any = {}
    if derived:
        more = {"derived_attributes": (DeviceDerivedAttribute(name=MADE, expression=ROOT),)}
    asked = claim(
        "claim",
        [request("r", "gpu", count, **more)],
        constraints=(convert({constraint: MADE if derived else KEY}, DeviceConstraint),),
    )
    return allocate(inventory, node("n"), [asked])


@settings(max_examples=300)
@given(roots, st.integers(1, 4), st.sampled_from(["matchAttribute", "distinctAttribute"]))
def test_it_matches_as_the_published_one(
    found: list[DeviceAttribute | None], count: int, constraint: str
) -> None:
    derived = answer(found, count, constraint, derived=True)
    published = answer(found, count, constraint, derived=False)
    if None in found:  # The expression fails for such a device.
        assert isinstance(published, Allocated) or not isinstance(derived, Allocated)
        return
    assert type(derived) is type(published)
    if isinstance(derived, Allocated) and isinstance(published, Allocated):
        results = [
            [result.device for each in one.results(lambda: "") for result in each.devices.results]
            for one in (derived, published)
        ]
        assert results[0] == results[1]


@settings(max_examples=100)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)))
def test_a_row_of_devices_is_taken_in_as_one_by_one(rows: list[list[str]]) -> None:
    one, other = AttributeTable(with_lists=True), AttributeTable(with_lists=True)
    elements = [tuple(each) for each in rows]
    one.add_run(3, elements)
    for position, each in enumerate(elements, 3):
        other.add(position, each)
    assert (one.known, one.holders, one.elements) == (other.known, other.holders, other.elements)
    assert one.only_first == other.only_first == 0
