"""The law of holdings: a device is open exactly if the allocator gives it to a claim for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.allocator import COMPILER
from moorage.allocator import ALL_FEATURES, Allocated, Features, Inventory, allocate
from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import DeviceAttribute, ResourceSlice
from moorage.insight.devices import DeviceState, DeviceUsage, usage_of
from moorage.insight.snapshot.snapshot import Snapshot
from tests.allocator.problems import FAMILIES, SMALL, problem
from tests.allocator.problems.parts import claim, class_, node, request
from tests.insight.devices.clusters import claim_of, result, slice_of
from tests.insight.devices.clusters import node as small_node

NUMBER = "law.example.com/number"


def numbered(slices: tuple[ResourceSlice, ...]) -> list[ResourceSlice]:
    """Return the slices with a number on each device, so that an expression can mean one."""
    found = []
    number = 0
    for each in slices:
        devices = []
        for device in each.spec.devices or ():
            mark = {NUMBER: DeviceAttribute(int_value=number)}
            devices.append(replace(device, attributes={**device.attributes, **mark}))
            number += 1
        found.append(replace(each, spec=replace(each.spec, devices=tuple(devices))))
    return found


def is_given(snapshot: Snapshot, features: Features, holding: DeviceUsage) -> bool:
    """Return whether a claim for the device, and nothing else, is allocated on some node."""
    number = holding.device.attributes[NUMBER].int_value
    inventory = Inventory(features, compiler=COMPILER)
    for each in snapshot.slices:
        inventory.put_slice(each)
    for held in snapshot.claims:
        inventory.put_claim(held)
    inventory.put_class(class_("it", f'device.attributes["law.example.com"].number == {number}'))
    wanted = claim("law", [request("r", "it")])
    return any(
        isinstance(allocate(inventory, each, [wanted]), Allocated) for each in snapshot.nodes
    )


def check_law(snapshot: Snapshot, features: Features) -> None:
    for holding in usage_of(snapshot, features).devices:
        if holding.state is DeviceState.MISSING:
            continue
        assert holding.is_open == is_given(snapshot, features, holding), holding
        assert (holding.state is DeviceState.FREE) == (holding.is_open and not holding.holders)
        if not holding.is_open and not holding.holders:
            assert holding.reasons, "a device that cannot be had has a reason"


@pytest.mark.parametrize("family", sorted(FAMILIES))
@given(seed=st.integers(min_value=0, max_value=10_000), more=st.booleans())
def test_a_device_is_open_exactly_if_a_claim_for_it_would_get_it(
    family: str, seed: int, more: bool
) -> None:
    case = problem(family, SMALL, seed)
    nodes: list[Node] = [case.node]
    if more:
        nodes += [
            replace(node(), metadata=ObjectMeta(name="other")),
            replace(
                node(declared=["DRAOptionalNodeOperations"]), metadata=ObjectMeta(name="third")
            ),
        ]
    features = Features.named(case.features)
    snapshot = Snapshot.of([*nodes, *numbered(case.slices), *case.allocated])
    check_law(snapshot, features)


SPREAD = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2", "n3", None]),  # None: for all nodes
        st.integers(min_value=1, max_value=2),  # generation
        st.integers(min_value=1, max_value=4),  # slices said to be there
        st.lists(st.sampled_from(["a", "b", "c"]), max_size=2),
    ),
    min_size=1,
    max_size=4,
)


@given(spread=SPREAD, counters=st.booleans(), uniform=st.booleans())
def test_the_law_holds_for_a_pool_over_several_nodes(
    spread: list[tuple[str | None, int, int, list[str]]], counters: bool, uniform: bool
) -> None:
    slices = []
    for number, (where, generation, count, devices) in enumerate(spread):
        place: dict[str, Any] = {"allNodes": True} if where is None else {"nodeName": where}
        made = slice_of(
            *devices,
            name=f"s{number}",
            pool="p",
            generation=1 if uniform else generation,
            count=len(spread) if uniform else count,
            **place,
        )
        slices.append(made)
    if counters:
        memory = {"name": "gpu", "counters": {"memory": {"value": "1"}}}
        slices.append(slice_of(name="counters", pool="p", sharedCounters=[memory], nodeName="n1"))
    nodes = [small_node(name) for name in ("n1", "n2", "n3")]
    held = claim_of("c", result("a", pool="p"))
    check_law(Snapshot.of([*nodes, *numbered(tuple(slices)), held]), ALL_FEATURES)
