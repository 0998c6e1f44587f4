"""Pools: which slices make one for a node, when its devices can be used, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.allocator import ALL_FEATURES, Features, Inventory
from moorage.allocator.errors import AllocationError
from moorage.allocator.pools import Pool, PoolState
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from tests.allocator.problems.parts import NODE, node, slice_

DRIVER = "gpu.example.com"
HERE = node(labels={"zone": "a"})
USABLE, INCOMPLETE, INVALID = PoolState.USABLE, PoolState.INCOMPLETE, PoolState.INVALID


def published(
    name: str,
    *devices: str | Device,
    pool: str = "pool",
    generation: int = 1,
    slices: int = 1,
    driver: str = DRIVER,
    **fields: Any,
) -> ResourceSlice:
    """Return a slice with devices of these names."""
    found = [Device(name=d) if isinstance(d, str) else d for d in devices]
    return slice_(name, driver, found, pool=ResourcePool(pool, generation, slices), **fields)


def seen(*slices: ResourceSlice, features: Features = ALL_FEATURES) -> tuple[Pool, ...]:
    """Return the pools that the node sees, in the order in which they are tried."""
    inventory = Inventory(features)
    for each in slices:
        inventory.put_slice(each)
    return inventory.view(HERE).seen


def only(*slices: ResourceSlice, features: Features = ALL_FEATURES) -> Pool:
    (pool,) = seen(*slices, features=features)
    return pool


def names(pool: Pool) -> list[str]:
    return [spot.device.name for spot in pool.published]


def elsewhere(name: str, *devices: str | Device, **fields: Any) -> ResourceSlice:
    return published(name, *devices, node_name="node-2", **fields)


def in_zone(zone: str, operator: str = "In") -> NodeSelector:
    requirement = NodeSelectorRequirement(key="zone", operator=operator, values=(zone,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


# --- for which node ---------------------------------------------------------------------------


def test_a_node_does_not_see_pools_of_others() -> None:
    assert seen(elsewhere("s", "gpu-0")) == ()


@pytest.mark.parametrize(
    ("fields", "is_seen"),
    [
        ({"all_nodes": True}, True),
        ({"node_selector": in_zone("a")}, True),
        ({"node_selector": in_zone("b")}, False),
        ({"node_selector": NodeSelector(node_selector_terms=())}, False),
        ({}, False),
        ({"all_nodes": False}, False),
        ({"per_device_node_selection": True}, False),
    ],
)
def test_a_slice_says_for_which_nodes_it_is(fields: dict[str, Any], is_seen: bool) -> None:
    pools = seen(published("s", "gpu-0", node_name=None, **fields))
    assert bool(pools) is is_seen


@pytest.mark.parametrize(
    ("device", "is_seen"),
    [
        (Device(name="gpu-0", node_name=NODE), True),
        (Device(name="gpu-0", node_name="node-2"), False),
        (Device(name="gpu-0", all_nodes=True), True),
        (Device(name="gpu-0", node_selector=in_zone("a")), True),
        (Device(name="gpu-0", node_selector=in_zone("b")), False),
        (Device(name="gpu-0"), False),
    ],
)
def test_one_device_for_the_node_is_enough_to_see_the_slice(device: Device, is_seen: bool) -> None:
    far = Device(name="gpu-1", node_name="node-2")
    slice_of_both = published("s", far, device, node_name=None, per_device_node_selection=True)
    pools = seen(slice_of_both)
    assert [names(pool) for pool in pools] == ([["gpu-1", "gpu-0"]] if is_seen else [])


def test_a_node_selector_that_cannot_be_read_is_a_fault() -> None:
    odd = in_zone("a", operator="Maybe")
    with pytest.raises(AllocationError) as of_slice:
        seen(published("s", "gpu-0", node_name=None, node_selector=odd))
    where = "gather pool information: failed to perform node selection for"
    assert str(of_slice.value).startswith(f"{where} slice s: failed to parse node selector")
    device = Device(name="gpu-0", node_selector=odd)
    with pytest.raises(AllocationError) as of_device:
        seen(published("s", device, node_name=None, per_device_node_selection=True))
    assert str(of_device.value).startswith(f"{where} device gpu-0 in slice s: failed to parse")


def test_slices_for_the_node_and_for_all_nodes_make_one_pool() -> None:
    local = published("b", "gpu-0", slices=2)
    everywhere = published("a", "gpu-1", slices=2, node_name=None, all_nodes=True)
    assert names(only(local, everywhere)) == ["gpu-1", "gpu-0"]


# --- completeness -----------------------------------------------------------------------------


def test_a_pool_with_all_its_slices_is_usable() -> None:
    pool = only(published("b", "gpu-1", slices=2), published("a", "gpu-0", slices=2))
    assert (pool.state, names(pool)) == (USABLE, ["gpu-0", "gpu-1"])


def test_slices_for_other_nodes_count_but_give_no_devices() -> None:
    pool = only(published("a", "gpu-0", slices=2), elsewhere("b", "gpu-1", slices=2))
    assert (pool.state, names(pool)) == (USABLE, ["gpu-0"])
    assert [spot.device.name for spot in pool.others] == ["gpu-1"]


@pytest.mark.parametrize("count", [1, 3])
def test_too_few_and_too_many_slices_are_incomplete(count: int) -> None:
    pool = only(*(published(f"s{n}", f"gpu-{n}", slices=2) for n in range(count)))
    assert (pool.state, names(pool)) == (INCOMPLETE, [])


def test_of_slices_that_disagree_about_their_number_the_first_by_name_counts() -> None:
    assert only(published("b", slices=7), published("a", slices=2)).state is USABLE
    assert only(published("b", slices=2), published("a", slices=7)).state is INCOMPLETE


def test_a_pool_of_no_slices_is_incomplete() -> None:
    assert only(published("s", "gpu-0", slices=0)).state is INCOMPLETE


# --- generations ------------------------------------------------------------------------------


def test_a_newer_generation_hides_older_ones() -> None:
    pool = only(published("a", "old", generation=1), published("b", "new", generation=2))
    assert names(pool) == ["new"]


def test_a_newer_generation_hides_older_ones_even_if_it_is_incomplete() -> None:
    pool = only(published("a", "old", generation=1), published("b", "new", generation=2, slices=2))
    assert pool.state is INCOMPLETE


def test_an_older_generation_is_used_if_it_is_complete_here_and_newer_only_elsewhere() -> None:
    pool = only(published("a", "old"), elsewhere("b", "new", generation=2))
    assert (pool.state, names(pool)) == (USABLE, ["old"])


def test_an_older_generation_that_is_incomplete_here_is_ignored_for_a_newer_one_elsewhere() -> None:
    assert seen(published("a", "old", slices=2), elsewhere("b", "new", generation=2)) == ()


def test_slices_of_older_generations_elsewhere_do_not_count() -> None:
    pool = only(published("a", "new", generation=2, slices=2), elsewhere("b", "old", slices=2))
    assert pool.state is INCOMPLETE


# --- validity ---------------------------------------------------------------------------------


def counted(name: str, set_name: str, counter: str = "memory", *groups: str) -> Device:
    """Return a device that takes one of a counter."""
    consumption = DeviceCounterConsumption(
        counter_set=set_name,
        counters={counter: Counter(Quantity.parse("1"))},
        compatibility_groups=groups,
    )
    return Device(name=name, consumes_counters=(consumption,))


def counter_slice(name: str, *sets: str, **fields: Any) -> ResourceSlice:
    shared = tuple(
        CounterSet(name=each, counters={"memory": Counter(Quantity.parse("4"))}) for each in sets
    )
    return slice_(
        name, DRIVER, None, pool=ResourcePool("pool", 1, 2), shared_counters=shared, **fields
    )


def test_a_device_name_that_is_there_twice_makes_a_pool_invalid() -> None:
    pool = only(published("a", "gpu-0", slices=2), published("b", "gpu-0", slices=2))
    assert (pool.state, pool.reason) == (INVALID, "duplicate device name gpu-0")
    assert names(pool) == []


def test_a_device_name_may_be_used_again_on_another_node() -> None:
    pool = only(published("a", "gpu-0", slices=2), elsewhere("b", "gpu-0", slices=2))
    assert (pool.state, names(pool)) == (USABLE, ["gpu-0"])


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        (
            [counter_slice("a", "one"), counter_slice("b", "one")],
            "duplicate counter set name one",
        ),
        (
            [counter_slice("a", "one"), published("b", counted("gpu-0", "two"), slices=2)],
            "counter set two not found",
        ),
        (
            [counter_slice("a", "one"), elsewhere("b", counted("gpu-0", "two"), slices=2)],
            "counter set two not found",
        ),
        (
            [
                counter_slice("a", "one"),
                published("b", counted("gpu-0", "one", "cores"), slices=2),
            ],
            "counter cores not found in counter set one",
        ),
    ],
)
def test_counters_that_contradict_themselves_make_a_pool_invalid(
    slices: list[ResourceSlice], reason: str
) -> None:
    pool = only(*slices)
    assert (pool.state, pool.reason) == (INVALID, reason)


def test_counters_may_be_published_for_another_node() -> None:
    pool = only(
        counter_slice("a", "one", node_name="node-2"),
        published("b", counted("gpu-0", "one"), slices=2),
    )
    assert (pool.state, list(pool.counter_sets)) == (USABLE, ["one"])


def test_an_incomplete_pool_is_not_called_invalid() -> None:
    assert only(published("a", "gpu-0", "gpu-0", slices=2)).state is INCOMPLETE


# --- features ---------------------------------------------------------------------------------


def test_without_partitionable_devices_slices_with_counters_only_count() -> None:
    off = ALL_FEATURES._replace(partitionable_devices=False)
    pool = only(
        counter_slice("a", "one"), published("b", counted("gpu-0", "two"), slices=2), features=off
    )
    assert (pool.state, names(pool)) == (USABLE, ["gpu-0"])


def test_without_partitionable_devices_no_device_chooses_its_nodes() -> None:
    off = ALL_FEATURES._replace(partitionable_devices=False)
    device = Device(name="gpu-0", node_name=NODE)
    chosen = published("s", device, node_name=None, per_device_node_selection=True)
    assert seen(chosen, features=off) == ()


def test_without_compatibility_groups_a_slice_that_uses_them_is_missing() -> None:
    off = ALL_FEATURES._replace(compatibility_groups=False)
    grouped = published("b", counted("gpu-0", "one", "memory", "group"), slices=2)
    slices = (counter_slice("a", "one"), grouped)
    assert only(*slices).state is USABLE
    assert only(*slices, features=off).state is INCOMPLETE


# --- order ------------------------------------------------------------------------------------


def test_pools_come_by_driver_and_name_byte_by_byte() -> None:
    pools = seen(
        published("a", pool="z", driver="b.example.com"),
        published("b", pool="b", driver="a.example.com"),
        published("c", pool="B", driver="a.example.com"),
        published("d", pool="é", driver="a.example.com"),
        published("e", pool="ba", driver="a.example.com"),
    )
    assert [str(pool.id) for pool in pools] == [
        "a.example.com/B",
        "a.example.com/b",
        "a.example.com/ba",
        "a.example.com/é",
        "b.example.com/z",
    ]


@pytest.mark.parametrize("is_on", [True, False])
def test_pools_with_binding_conditions_come_last(is_on: bool) -> None:
    features = ALL_FEATURES._replace(device_binding_and_status=is_on)
    pools = seen(
        published("a", "gpu-0", waiting("gpu-1"), pool="a"),
        published("b", "gpu-0", pool="b"),
        published("c", waiting("gpu-0"), pool="c"),
        features=features,
    )
    assert [pool.id.name for pool in pools] == ["b", "a", "c"]


def waiting(name: str) -> Device:
    return Device(name=name, binding_conditions=("ready",))


def test_binding_conditions_of_devices_for_other_nodes_do_not_count() -> None:
    pools = seen(
        published("a", "gpu-0", pool="a", slices=2),
        elsewhere("b", waiting("gpu-1"), pool="a", slices=2),
        published("c", "gpu-0", pool="c"),
    )
    assert [pool.id.name for pool in pools] == ["a", "c"]


def test_devices_come_by_the_name_of_their_slice_and_then_as_listed() -> None:
    pool = only(
        published("s-2", "a", slices=3),
        published("s-10", "z", "b", slices=3),
        published("s-1", "y", slices=3),
    )
    assert names(pool) == ["y", "z", "b", "a"]
