"""Slices reach the desired state in one pass, with as few writes as possible."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.timestamp import Timestamp
from moorage.driver.driver import Pool
from moorage.driver.errors import InventoryError
from moorage.driver.slice_plan import Publisher, SlicePlan, StoredSlice, plan
from moorage.validation.resource_slice import ResourceSliceStrategy
from moorage.validation.strategy import Context

PUBLISHER = Publisher("blinker.example.com", "node-1", "uid-of-node-1")
NOW = Timestamp(datetime(2026, 11, 15, tzinfo=UTC))


class Shelf:
    """Slices as a server keeps them, which checks what is written."""

    def __init__(self, slices: tuple[ResourceSlice, ...] = ()) -> None:
        self.slices = {each.metadata.name: each for each in slices}
        self._number = 0

    def settle(self, *pools: Pool) -> SlicePlan:
        """Carry out what is planned, and check that nothing is planned after that."""
        found = self.plan(*pools)
        for delete in found.deletes:
            del self.slices[delete.target.name]
        for update in found.updates:
            assert update.value.metadata.name in self.slices
            self._store(update.value)
        for create in found.creates:
            self._number += 1
            prefix = create.value.metadata.generate_name[:58]
            metadata = replace(create.value.metadata, name=f"{prefix}{self._number:05}")
            self._store(replace(create.value, metadata=metadata))
        assert len(self.plan(*pools)) == 0
        return found

    def plan(self, *pools: Pool) -> SlicePlan:
        return plan(pools, self.slices.values(), PUBLISHER)

    def _store(self, value: ResourceSlice) -> None:
        strategy = ResourceSliceStrategy()
        context = Context(Gates.parse(""), NOW)
        value = strategy.default(value, value.api_version, context)
        assert strategy.validate(value, context) == []
        self.slices[value.metadata.name] = value

    @property
    def devices(self) -> list[str]:
        found = [each.spec.devices or () for _, each in sorted(self.slices.items())]
        return [device.name for devices in found for device in devices]


def devices(count: int, start: int = 0) -> tuple[Device, ...]:
    return tuple(Device(name=f"d{number}") for number in range(start, start + count))


def test_one_pool_is_one_slice_owned_by_its_node() -> None:
    shelf = Shelf()
    shelf.settle(Pool(devices=devices(2)))
    (found,) = shelf.slices.values()
    assert found.metadata.name.startswith("00000-blinker.example.com-node-1-")
    (owner,) = found.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == ("Node", "node-1", "uid-of-node-1")
    assert owner.controller
    assert found.spec.pool == ResourcePool(name="node-1", generation=1, resource_slice_count=1)
    assert found.spec.node_name == "node-1"


def test_slices_of_the_older_scheme_of_names_are_made_anew() -> None:
    shelf = Shelf()
    shelf.settle(Pool(devices=devices(2)))
    (found,) = shelf.slices.values()
    older = replace(found, metadata=replace(found.metadata, name="node-1-blinker-x7k2p"))
    shelf.slices = {older.metadata.name: older}
    plan = shelf.settle(Pool(devices=devices(2)))
    assert (len(plan.deletes), len(plan.creates)) == (1, 1)
    assert all(name.startswith("00000-") for name in shelf.slices)


def test_an_empty_pool_is_an_empty_slice() -> None:
    shelf = Shelf()
    shelf.settle(Pool())
    (found,) = shelf.slices.values()
    assert found.spec.devices in ((), None)


def test_no_pools_leave_no_slices() -> None:
    shelf = Shelf()
    shelf.settle(Pool(devices=devices(100)))
    assert len(shelf.settle().deletes) == 2


def test_a_change_of_one_device_is_one_update_and_no_new_generation() -> None:
    shelf = Shelf()
    wanted = devices(500)
    shelf.settle(Pool(devices=wanted))
    taint = DeviceTaint(key="broken", effect="NoSchedule")
    changed = (*wanted[:70], replace(wanted[70], taints=(taint,)), *wanted[71:])
    found = shelf.settle(Pool(devices=changed))
    assert (len(found.deletes), len(found.updates), len(found.creates)) == (0, 1, 0)
    assert {each.spec.pool.generation for each in shelf.slices.values()} == {1}


@pytest.mark.parametrize("position", [0, 1, 64, 130, 199])
def test_a_device_that_goes_or_comes_back_is_one_update(position: int) -> None:
    shelf = Shelf()
    wanted = devices(200)
    shelf.settle(Pool(devices=wanted))
    without = (*wanted[:position], *wanted[position + 1 :])
    assert len(shelf.settle(Pool(devices=without))) == 1
    assert len(shelf.settle(Pool(devices=wanted))) == 1
    assert sorted(shelf.devices) == sorted(each.name for each in wanted)


def test_one_slice_more_changes_all_of_them_to_a_new_generation() -> None:
    shelf = Shelf()
    shelf.settle(Pool(devices=devices(64)))
    found = shelf.settle(Pool(devices=devices(65)))
    assert (len(found.updates), len(found.creates)) == (1, 1)
    assert {each.spec.pool.generation for each in shelf.slices.values()} == {2}
    assert {each.spec.pool.resource_slice_count for each in shelf.slices.values()} == {2}


def test_counters_are_in_slices_of_their_own() -> None:
    sets = tuple(CounterSet(name=f"set-{n}", counters={"a": one()}) for n in range(10))
    shelf = Shelf()
    shelf.settle(Pool(devices=tuple(consumer(n) for n in range(100)), counters=sets))
    assert len(shelf.slices) == 4
    assert all(
        each.spec.devices is None or each.spec.shared_counters is None
        for each in shelf.slices.values()
    )


def one() -> Counter:
    return Counter(value=Quantity.parse("1"))


def consumer(number: int, counter_set: str = "set-0", counter: str = "a") -> Device:
    consumption = DeviceCounterConsumption(counter_set=counter_set, counters={counter: one()})
    return Device(name=f"d{number}", consumes_counters=(consumption,))


def test_the_time_of_a_taint_stays() -> None:
    shelf = Shelf()
    taint = DeviceTaint(key="broken", effect="NoSchedule")
    shelf.settle(Pool(devices=(Device(name="a", taints=(taint,)),)))
    labelled = Device(
        name="a", taints=(taint,), attributes={"x": DeviceAttribute(string_value="y")}
    )
    (update,) = shelf.plan(Pool(devices=(labelled,))).updates
    assert update.value.spec.devices[0].taints[0].time_added == NOW


def test_generations_of_the_driver_are_taken_when_they_are_higher() -> None:
    shelf = Shelf()
    shelf.settle(Pool(devices=devices(1), generation=7))
    assert {each.spec.pool.generation for each in shelf.slices.values()} == {7}
    assert len(shelf.settle(Pool(devices=devices(1), generation=3))) == 0


def test_what_the_server_dropped_is_not_sent_again() -> None:
    shelf = Shelf()
    pool = Pool(devices=(Device(name="a", allow_multiple_allocations=True),))
    shelf.settle(pool)
    ((name, found),) = shelf.slices.items()
    kept = replace(found.spec, devices=(Device(name="a"),))
    reduced = replace(found, spec=kept)
    stored = {name: StoredSlice(found.spec, kept)}
    assert len(plan([pool], [reduced], PUBLISHER)) == 1
    assert len(plan([pool], [reduced], PUBLISHER, stored)) == 0


@pytest.mark.parametrize(
    ("pools", "fact"),
    [
        ([Pool(devices=devices(1) * 2)], 'found duplicate device "d0" in pool "node-1"'),
        ([Pool(), Pool()], 'found duplicate pool "node-1"'),
        (
            [Pool(devices=(consumer(0),))],
            'counter set "set-0" referenced by device "d0" not found',
        ),
        (
            [Pool(devices=(consumer(0),), counters=(CounterSet(name="set-0"),))],
            'counter "a" referenced by device "d0" not found in counter set "set-0"',
        ),
        (
            [Pool(counters=(CounterSet(name="x"), CounterSet(name="x")))],
            'found duplicate counter set "x" in pool "node-1"',
        ),
        ([Pool(name="p", all_nodes=True)], 'pool "p" is for several nodes'),
    ],
)
def test_contradictions_are_said(pools: list[Pool], fact: str) -> None:
    with pytest.raises(InventoryError, match=fact):
        plan(pools, [], PUBLISHER)


def test_without_a_node_pools_say_where_they_are() -> None:
    nobody = Publisher("blinker.example.com")
    with pytest.raises(InventoryError, match='"p" does not say which nodes'):
        plan([Pool(name="p")], [], nobody)
    (create,) = plan([Pool(name="p", all_nodes=True)], [], nobody).creates
    assert create.value.metadata.generate_name == "00000-blinker.example.com-"
    assert (create.value.spec.all_nodes, create.value.spec.node_name) == (True, None)


# --- laws -----------------------------------------------------------------------------------------

_NAMES = [f"d{number}" for number in range(150)]
_TAINTS = st.sampled_from(
    [(), (DeviceTaint(key="k", effect="NoSchedule"),), (DeviceTaint(key="k", effect="NoExecute"),)]
)


@st.composite
def some_devices(draw: st.DrawFn) -> tuple[Device, ...]:
    names = draw(st.permutations(_NAMES))[: draw(st.integers(0, len(_NAMES)))]
    tainted = {name: draw(_TAINTS) for name in names[:3]}
    return tuple(Device(name=name, taints=tainted.get(name, ())) for name in names)


@st.composite
def some_pools(draw: st.DrawFn) -> tuple[Pool, ...]:
    names = draw(st.sets(st.sampled_from(["", "second", "third"]), max_size=3))
    sets = tuple(CounterSet(name=f"s{n}", counters={"a": one()}) for n in range(12))
    return tuple(
        Pool(
            name=name,
            devices=draw(some_devices()),
            counters=sets[: draw(st.sampled_from([0, 0, 1, 9, 12]))],
            generation=draw(st.sampled_from([0, 0, 3])),
        )
        for name in sorted(names)
    )


@st.composite
def any_slice(draw: st.DrawFn) -> ResourceSlice:
    index = draw(st.integers(0, 6) | st.sampled_from([0xFFFFF, -1]))
    prefix = f"{index:05x}-" if index >= 0 else draw(st.sampled_from(["foreign-", "0-", "zz"]))
    name = f"{prefix}x-{draw(st.integers(0, 10**6))}"
    pool = ResourcePool(
        name=draw(st.sampled_from(["node-1", "second", "other"])),
        generation=draw(st.integers(0, 3)),
        resource_slice_count=draw(st.integers(1, 4)),
    )
    found = draw(some_devices())
    has_counters = draw(st.booleans())
    spec = ResourceSliceSpec(
        driver=PUBLISHER.driver,
        pool=pool,
        node_name="node-1",
        devices=None if has_counters else found,
        shared_counters=(CounterSet(name="s0", counters={"a": one()}),) if has_counters else None,
    )
    return ResourceSlice(metadata=ObjectMeta(name=name, uid=name), spec=spec)


def test_counter_sets_that_move_to_another_slice_are_in_their_order_there() -> None:
    sets = tuple(CounterSet(name=f"s{number}", counters={"a": one()}) for number in range(12))
    shelf = Shelf()
    shelf.settle(Pool(counters=sets[1:]))  # the second slice has s9 to s11
    shelf.settle(Pool(counters=sets[:1] + sets[9:]))
    shelf.settle(Pool(counters=sets))
    placed = [
        [each.name for each in found.spec.shared_counters or ()] for found in shelf.slices.values()
    ]
    assert all(names == sorted(names, key=lambda name: int(name[1:])) for names in placed)


@given(st.lists(any_slice(), max_size=5), some_pools(), some_pools())
def test_any_state_becomes_what_is_wanted_in_one_pass(
    before: list[ResourceSlice], first: tuple[Pool, ...], second: tuple[Pool, ...]
) -> None:
    shelf = Shelf(tuple(before))
    for pools in (first, second):
        shelf.settle(*pools)
        found: dict[str, list[str]] = {pool.name or "node-1": [] for pool in pools}
        for each in shelf.slices.values():
            pool = each.spec.pool
            found[pool.name] += [device.name for device in each.spec.devices or ()]
            same_pool = [s for s in shelf.slices.values() if s.spec.pool.name == pool.name]
            assert pool.resource_slice_count == len(same_pool)
            assert {s.spec.pool.generation for s in same_pool} == {pool.generation}
        wanted = {pool.name or "node-1": [d.name for d in pool.devices] for pool in pools}
        assert {k: sorted(v) for k, v in found.items()} == {k: sorted(v) for k, v in wanted.items()}


@given(some_devices().filter(bool), st.integers(0, 149), _TAINTS)
def test_a_changed_device_is_at_most_one_update(
    wanted: tuple[Device, ...], position: int, taints: tuple[DeviceTaint, ...]
) -> None:
    shelf = Shelf()
    shelf.settle(Pool(devices=wanted))
    position %= len(wanted)
    changed = replace(wanted[position], taints=taints)
    found = shelf.settle(Pool(devices=(*wanted[:position], changed, *wanted[position + 1 :])))
    assert not found.deletes
    assert not found.creates
    assert len(found.updates) <= 1
