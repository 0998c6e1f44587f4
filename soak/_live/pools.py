"""The devices of a cluster, of five drivers.

A device of a pool is always the same: it may come and go, be tainted and republished, but it never
gets another size. So devices that are allocated too often can be counted from the names alone.

gpu     one to three devices on each node, each for one claim, or for any number of admins
nic     two devices for all nodes, each shared by bandwidth
mig     on node-1: a whole device, or two halves, or one half and two quarters, from one counter set
fabric  three devices for all nodes, which bind to the node and must get ready there, or fail
cores   on node-2: two devices, each of which takes cpus of the node
"""

from __future__ import annotations

from random import Random
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.resource.v1 import ResourceSlice

Tree = dict[str, Any]

NODES = ("node-1", "node-2", "node-3")
GPU, NIC, MIG = "gpu.example.com", "nic.example.com", "mig.example.com"
FABRIC, CORES = "fabric.example.com", "cores.example.com"
POOLS = (
    *((GPU, name) for name in NODES),
    *((NIC, "net"), (MIG, "mig"), (FABRIC, "fabric"), (CORES, "node-2")),
)
NUMBERS = {GPU: 3, NIC: 2, FABRIC: 3, CORES: 2}
BANDWIDTH = 10  # of each nic
PARTS = {"whole": 4, "half-0": 2, "half-1": 2, "quarter-2": 1, "quarter-3": 1}
MEMORY = 4  # of the counter set of the mig device
CORES_CPUS = 3  # that each of the cores takes of its node
READY, BROKEN = "ready", "broken"
FEATURES: dict[str, Tree] = {
    NIC: {
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": str(BANDWIDTH)}},
    },
    FABRIC: {
        "bindsToNode": True,
        "bindingConditions": [READY],
        "bindingFailureConditions": [BROKEN],
    },
    CORES: {
        "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": str(CORES_CPUS)}}}
    },
}


def made(struct: type[Any], name: str, *, is_global: bool = False, **fields: Any) -> Any:
    """Return an object."""
    metadata = {"name": name} if is_global else {"name": name, "namespace": "default"}
    return decode_tree({"metadata": metadata, **fields}, struct).value


def slices(driver: str, pool: str, generation: int, random: Random | None) -> list[ResourceSlice]:
    """Return the slices of a pool; with a random number, perhaps not all of its devices."""
    if driver == MIG:
        counters = {"memory": {"value": str(MEMORY)}}
        shared = {"sharedCounters": [{"name": "set", "counters": counters}]}
        devices = {"devices": [_part(name, random) for name in PARTS]}
        return [
            _slice(driver, pool, generation, 2, "counters", {"nodeName": "node-1", **shared}),
            _slice(driver, pool, generation, 2, "devices", {"nodeName": "node-1", **devices}),
        ]
    devices_there = [_device(driver, number, random) for number in range(NUMBERS[driver])]
    if random is not None:
        devices_there = devices_there[: random.randint(0, len(devices_there))]
    where: Tree = {"nodeName": pool} if pool in NODES else {"allNodes": True}
    if random is not None and random.random() < 0.3 and len(devices_there) > 1:
        parts = [devices_there[:1], devices_there[1:]]
    else:
        parts = [devices_there]
    return [
        _slice(driver, pool, generation, len(parts), str(number), {**where, "devices": part})
        for number, part in enumerate(parts)
    ]


def _slice(
    driver: str, pool: str, generation: int, count: int, name: str, more: Tree
) -> ResourceSlice:
    place = {"name": pool, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": place, **more}
    name = f"{driver.partition('.')[0]}-{pool}-{generation}-{name}"
    found: ResourceSlice = made(ResourceSlice, name, is_global=True, spec=spec)
    return found


def _device(driver: str, number: int, random: Random | None) -> Tree:
    name = f"{driver.partition('.')[0]}-{number}"
    return {"name": name, **FEATURES.get(driver, {}), **_taints(random)}


def _part(name: str, random: Random | None) -> Tree:
    counters = {"memory": {"value": str(PARTS[name])}}
    consumed = [{"counterSet": "set", "counters": counters}]
    return {"name": name, "consumesCounters": consumed, **_taints(random)}


def _taints(random: Random | None) -> Tree:
    if random is None or random.random() < 0.85:
        return {}
    return {"taints": [{"key": "sick", "effect": random.choice(["NoSchedule", "NoExecute"])}]}
