"""Whatever pods come and go, no device is two pods' at once, and all are free at the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.node import errors
from moorage.node.device_plugins import allocation, manager
from moorage.node.device_plugins.allocation import (
    AllocationRefusal,
    Allotment,
    DeviceChoice,
    DeviceLedger,
)
from moorage.node.device_plugins.inventory import PluginDevice, ResourceDevices
from tests.node.device_plugins.plugins import RESOURCE

IDS = [str(number) for number in range(6)]
steps = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 4), st.lists(st.sampled_from(IDS))),
    max_size=20,
)


@given(steps, st.sets(st.sampled_from(IDS)))
def test_no_device_is_held_twice(steps: list[tuple[str, int, list[str]]], sick: set[str]) -> None:
    stock = ResourceDevices({id_: PluginDevice(id_) for id_ in IDS}, frozenset(IDS) - sick)
    ledger = DeviceLedger()
    for pod_uid, size, preferred in steps:
        if ledger.drop(pod_uid) or not size:
            continue
        taken = ledger.taken(RESOURCE)
        choice = allocation.choose(RESOURCE, size, own=(), stock=stock, taken=taken)
        if isinstance(choice, AllocationRefusal):
            assert len(stock.usable - taken) < size
            continue
        ids = allocation.settle(choice, preferred)
        assert len(set(ids)) == size
        assert taken.isdisjoint(ids)
        assert stock.usable.issuperset(ids)
        ledger.hold(Allotment(pod_uid, "main", RESOURCE, tuple(map(PluginDevice, ids))))
    saved = manager.SavedAllotments((RESOURCE,), ledger.allotments)
    assert manager.decode_checkpoint(manager.encode_checkpoint(saved)) == saved
    for pod_uid in ledger.pods:
        ledger.drop(pod_uid)
    assert ledger.amounts() == {}


@given(st.data())
def test_what_was_changed_in_a_checkpoint_is_noticed(data: st.DataObject) -> None:
    saved = manager.SavedAllotments((RESOURCE,), (Allotment("a", "main", RESOURCE, ()),))
    content = bytearray(manager.encode_checkpoint(saved))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        assert manager.decode_checkpoint(bytes(content)) == saved
    except errors.CheckpointError as error:
        assert str(error)  # noqa: PT017


def test_devices_of_the_pod_itself_come_first_and_need_not_be_free() -> None:
    stock = ResourceDevices({id_: PluginDevice(id_) for id_ in IDS}, frozenset(IDS))
    taken = frozenset(["4", "5"])
    choice = allocation.choose(RESOURCE, 3, own=("5", "4"), stock=stock, taken=taken)
    assert choice == DeviceChoice(3, ("5", "4"), ("0", "1", "2", "3"))
    assert allocation.settle(choice) == ("5", "4", "0")


@pytest.mark.parametrize(
    ("stock", "text"),
    [
        (None, f"cannot allocate unregistered device {RESOURCE}"),
        (
            ResourceDevices({}),
            f"no healthy devices present; cannot allocate unhealthy devices {RESOURCE}",
        ),
    ],
)
def test_refusals_are_worded_as_kubernetes_has_them(
    stock: ResourceDevices | None, text: str
) -> None:
    refusal = allocation.choose(RESOURCE, 1, own=(), stock=stock, taken=frozenset())
    assert refusal == AllocationRefusal(text)


def test_pods_are_told_the_health_of_their_devices() -> None:
    held = Allotment("uid", "main", RESOURCE, (PluginDevice("a"), PluginDevice("b")))
    (status,) = allocation.resource_statuses([held], lambda _, id_: id_ == "a")
    told = [(each.resource_id, each.health) for each in status.resources]
    assert (status.name, told) == (RESOURCE, [("a", "Healthy"), ("b", "Unhealthy")])


def test_devices_are_listed_one_by_one_with_their_numa_nodes() -> None:
    devices = (PluginDevice("a", numa_nodes=(0, 1)), PluginDevice("b"))
    held = Allotment("uid", "main", RESOURCE, devices)
    first, second = allocation.container_devices([held])
    assert (first.resource_name, list(first.device_ids)) == (RESOURCE, ["a"])
    assert [node.ID for node in first.topology.nodes] == [0, 1]
    assert not second.HasField("topology")
    assert list(allocation.allocatable_devices({RESOURCE: devices})) == [first, second]
