"""Slices of the mixed family: pools of all kinds, also broken ones and those of other nodes."""

from __future__ import annotations

from random import Random
from typing import Any

from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
)
from tests.allocator.problems.consumable import policy
from tests.allocator.problems.parts import (
    NODE,
    NUMA,
    Size,
    attributes,
    is_lucky,
    quantities,
    slice_,
    some,
    split,
)

DRIVERS = ("gpu.example.com", "nic.example.com")
GROUP = "derived.example.com/group"


def slices(random: Random, size: Size) -> tuple[ResourceSlice, ...]:
    """Return the slices of one to three pools."""
    pools = split(
        random, random.randint(size.devices_max // 2, size.devices_max), random.randint(1, 3)
    )
    found: list[ResourceSlice] = []
    for number, devices in enumerate(pools):
        found += _pool(random, f"pool-{number}", random.choice(DRIVERS), devices)
    random.shuffle(found)
    return tuple(found)


def _pool(random: Random, name: str, driver: str, count: int) -> list[ResourceSlice]:
    with_counters = is_lucky(random, 0.2)
    devices = [_device(random, number, with_counters=with_counters) for number in range(count)]
    parts = [devices[: count // 2], devices[count // 2 :]] if is_lucky(random, 0.3) else [devices]
    broken = random.choice(["incomplete", "duplicate"]) if is_lucky(random, 0.04) else None
    if broken == "duplicate":
        parts[-1] = [*parts[-1], parts[-1][0]]
    slices_max = len(parts) + with_counters + (broken == "incomplete")
    pool = ResourcePool(name, 2, slices_max)
    fields = _selection(random)
    found = [
        slice_(f"{name}-{n}", driver, part, **{"pool": pool, **fields})
        for n, part in enumerate(parts)
    ]
    if with_counters:
        # Counters of a pool for each device's own nodes are for all of them.
        nodes = {"node_name": None, "all_nodes": True} if "node_name" in fields else {}
        shared = {"pool": pool, "shared_counters": _counter_sets(), **nodes}
        found.append(slice_(f"{name}-counters", driver, None, **shared))
    if is_lucky(random, 0.1):
        old = ResourcePool(name, 1, 1)
        found.append(slice_(f"{name}-old", driver, [_device(random, 9)], pool=old))
    if is_lucky(random, 0.1):
        elsewhere = ResourcePool(f"{name}-elsewhere", 1, 1)
        device = _device(random, 8)
        found.append(
            slice_(f"{name}-elsewhere", driver, [device], pool=elsewhere, node_name="node-2")
        )
    return found


def _selection(random: Random) -> dict[str, Any]:
    """Return how the slices of a pool select nodes."""
    match random.choice(["name", "name", "name", "all", "selector", "device"]):
        case "name":
            return {}
        case "all":
            return {"node_name": None, "all_nodes": True}
        case "selector":
            return {"node_name": None, "node_selector": _selector(random)}
        case _:
            return {"node_name": None, "per_device_node_selection": True}


def _selector(random: Random) -> NodeSelector:
    requirement = random.choice(
        [
            NodeSelectorRequirement("zone", "In", ("z1", "z2")),
            NodeSelectorRequirement("zone", "NotIn", ("z2",)),
            NodeSelectorRequirement("zone", "Exists"),
            NodeSelectorRequirement("age", "Gt", ("5",)),
            NodeSelectorRequirement("age", "Lt", ("5",)),
            NodeSelectorRequirement("other", "DoesNotExist"),
        ]
    )
    if is_lucky(random, 0.2):
        name = NodeSelectorRequirement("metadata.name", "In", (NODE,))
        return NodeSelector((NodeSelectorTerm((requirement,), (name,)),))
    return NodeSelector((NodeSelectorTerm((requirement,)),))


def _counter_sets() -> tuple[CounterSet, ...]:
    counters = {name: Counter(v) for name, v in quantities({"units": "4", "memory": "8Gi"}).items()}
    return (CounterSet("one", counters), CounterSet("two", counters))


def _device(random: Random, number: int, *, with_counters: bool = False) -> Device:
    """Return a device, plain in most respects; its own nodes matter only to some slices."""
    fields: dict[str, Any] = {}
    if is_lucky(random, 0.1):
        fields["taints"] = (_taint(random),)
    if is_lucky(random, 0.1):
        fields["binding_conditions"] = ("ready",)
        fields["binding_failure_conditions"] = ("failed",)
        fields["binds_to_node"] = is_lucky(random, 0.5)
    if is_lucky(random, 0.3):
        fields["allow_multiple_allocations"] = is_lucky(random, 0.8)
    if with_counters and is_lucky(random, 0.8):
        fields["consumes_counters"] = _consumption(random)
    place = random.choice(["here", "here", "here", "all", "selector", "elsewhere"])
    match place:
        case "here" | "elsewhere":
            fields["node_name"] = NODE if place == "here" else "node-2"
        case "all":
            fields["all_nodes"] = True
        case _:
            fields["node_selector"] = _selector(random)
    return Device(f"device-{number}", _attributes(random, number), _capacity(random), **fields)


def _attributes(random: Random, number: int) -> Any:
    socket = random.randrange(2)
    values: dict[str, Any] = {
        "model": None if is_lucky(random, 0.1) else random.choice("aab"),
        "index": number,
        "healthy": is_lucky(random, 0.8) if is_lucky(random, 0.3) else None,
        NUMA: (socket, 1 - socket) if is_lucky(random, 0.2) else socket,
        GROUP: random.randrange(3) if is_lucky(random, 0.6) else None,
    }
    return attributes(values)


def _capacity(random: Random) -> dict[str, DeviceCapacity]:
    if is_lucky(random, 0.3):
        return {}
    amount = Quantity.parse(random.choice(["4Gi", "8Gi", "10Gi"]))
    return {
        "memory": DeviceCapacity(amount, policy(random, "Gi") if is_lucky(random, 0.5) else None)
    }


def _taint(random: Random) -> DeviceTaint:
    effect = random.choice(["NoSchedule", "NoExecute", "None"])
    return DeviceTaint(random.choice(["bad", "old"]), random.choice(["", "yes"]), effect)


def _consumption(random: Random) -> tuple[DeviceCounterConsumption, ...]:
    consumptions = []
    for name in some(random, ["one", "two"], 2):
        amounts = {"units": str(random.randint(1, 3)), "memory": f"{random.randint(0, 4)}Gi"}
        counters = {key: Counter(amount) for key, amount in quantities(amounts).items()}
        groups = tuple(some(random, ["a", "b"], 2)) if is_lucky(random, 0.3) else ()
        consumptions.append(DeviceCounterConsumption(name, counters, groups))
    return tuple(consumptions)
