"""What there can be in a cluster: three nodes, devices of three drivers, claims and pods.

A device of a pool is always the same: it may come and go, be tainted and republished, but it never
gets another size. So what is given too often can be counted from the names alone.

gpu  one to three devices on each node, each for one claim
nic  two devices for all nodes, each shared by bandwidth
mig  on node-1: a whole device, or two halves, or one half and two quarters, from one counter set
"""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from mooring.api.codec import decode_tree
from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.api.scheduling import PROTECTION_FINALIZER, PodGroup

Tree = dict[str, Any]

NODES = ("node-1", "node-2", "node-3")
GPU, NIC, MIG = "gpu.example.com", "nic.example.com", "mig.example.com"
RESOURCE = "example.com/gpu"
BANDWIDTH = 10  # of each nic
PARTS = {"whole": 4, "half-0": 2, "half-1": 2, "quarter-2": 1, "quarter-3": 1}
MEMORY = 4  # of the counter set of the mig device
SCHEDULERS = ("default-scheduler", "second-scheduler")
NAMES = tuple(f"p-{number}" for number in range(12))
CLAIMS: dict[str, Tree] = {
    "c-gpu": {"class": "gpu"},
    "c-two": {"class": "gpu", "count": 2},
    "c-nic": {"class": "nic", "capacity": "4"},
    "c-mig": {"class": "mig"},
}
POOLS = (*((GPU, name) for name in NODES), (NIC, "net"), (MIG, "mig"))


def _made(struct: type[Any], name: str, *, is_global: bool = False, **fields: Any) -> Any:
    metadata = {"name": name} if is_global else {"name": name, "namespace": "default"}
    return decode_tree({"metadata": metadata, **fields}, struct).value


# --- nodes, classes and rules -------------------------------------------------------------------


def node(name: str) -> Node:
    """Return a node."""
    tree = {"kubernetes.io/hostname": name}
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "20"}
    made: Node = decode_tree(
        {"metadata": {"name": name, "labels": tree}, "status": {"allocatable": allocatable}}, Node
    ).value
    return made


def device_class(name: str, random: Random | None = None) -> DeviceClass:
    """Return a class, sometimes one that selects nothing, or without its extended resource."""
    driver = {"gpu": GPU, "nic": NIC, "mig": MIG}[name]
    expression = f'device.driver == "{driver}"'
    if random is not None and random.random() < 0.3:
        expression = "false"
    spec: Tree = {"selectors": [{"cel": {"expression": expression}}]}
    if name == "gpu" and (random is None or random.random() < 0.8):
        spec["extendedResourceName"] = RESOURCE
    found: DeviceClass = _made(DeviceClass, name, is_global=True, spec=spec)
    return found


def taint_rule(name: str, random: Random) -> DeviceTaintRule:
    """Return a rule for a pool, a driver or a device."""
    driver, pool = random.choice(POOLS)
    selector = random.choice([{"driver": driver}, {"driver": driver, "pool": pool}])
    taint = {"key": "broken", "effect": random.choice(["NoSchedule", "NoExecute", "None"])}
    spec = {"deviceSelector": selector, "taint": taint}
    found: DeviceTaintRule = _made(DeviceTaintRule, name, is_global=True, spec=spec)
    return found


# --- slices -------------------------------------------------------------------------------------


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
    devices_there = [_gpu(n, random) for n in range(3)] if driver == GPU else _nics(random)
    if random is not None:
        devices_there = devices_there[: random.randint(0, len(devices_there))]
    where: Tree = {"nodeName": pool} if driver == GPU else {"allNodes": True}
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
    found: ResourceSlice = _made(ResourceSlice, name, is_global=True, spec=spec)
    return found


def _gpu(number: int, random: Random | None) -> Tree:
    return {"name": f"gpu-{number}", **_taints(random)}


def _nics(random: Random | None) -> list[Tree]:
    return [
        {
            "name": f"nic-{number}",
            "allowMultipleAllocations": True,
            "capacity": {"bandwidth": {"value": str(BANDWIDTH)}},
            **_taints(random),
        }
        for number in range(2)
    ]


def _part(name: str, random: Random | None) -> Tree:
    counters = {"memory": {"value": str(PARTS[name])}}
    consumed = [{"counterSet": "set", "counters": counters}]
    return {"name": name, "consumesCounters": consumed, **_taints(random)}


def _taints(random: Random | None) -> Tree:
    if random is None or random.random() < 0.85:
        return {}
    return {"taints": [{"key": "sick", "effect": random.choice(["NoSchedule", "NoExecute"])}]}


# --- claims -------------------------------------------------------------------------------------


def request(wanted: Tree) -> Tree:
    """Return a request of a claim."""
    if "first" in wanted:
        choices = [
            {"name": f"n-{count}", "deviceClassName": wanted["first"], "count": count}
            | {"allocationMode": "ExactCount"}
            for count in (2, 1)
        ]
        return {"name": "r", "firstAvailable": choices}
    exactly: Tree = {"deviceClassName": wanted["class"], "allocationMode": "ExactCount"}
    exactly["count"] = wanted.get("count", 1)
    if "capacity" in wanted:
        exactly["capacity"] = {"requests": {"bandwidth": wanted["capacity"]}}
    if wanted.get("tolerates"):
        toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
        exactly["tolerations"] = [toleration]
    return {"name": "r", "exactly": exactly}


TEMPLATES: dict[str, Tree] = {
    "t-gpu": {"class": "gpu"},
    "t-two": {"class": "gpu", "count": 2},
    "t-first": {"first": "gpu"},
    "t-nic": {"class": "nic", "capacity": "4"},
    "t-mig": {"class": "mig"},
    "t-patient": {"class": "gpu", "tolerates": True},
}


def claim(name: str) -> ResourceClaim:
    """Return one of the claims that pods share by name."""
    devices = {"requests": [request(CLAIMS[name])]}
    found: ResourceClaim = _made(ResourceClaim, name, spec={"devices": devices})
    return found


def template(name: str) -> ResourceClaimTemplate:
    """Return a template."""
    spec = {"spec": {"devices": {"requests": [request(TEMPLATES[name])]}}}
    found: ResourceClaimTemplate = _made(ResourceClaimTemplate, name, spec=spec)
    return found


# --- pods and groups ----------------------------------------------------------------------------


def pod(name: str, random: Random, *, rivalry: str) -> Pod:
    """Return a pod of some kind, for one of two schedulers if there are two that share the work.

    Of two that do the same work, one may delete the special claim of the other.
    """
    extended = rivalry != "same"
    scheduler = random.choice(SCHEDULERS) if rivalry == "other" else SCHEDULERS[0]
    entries: list[Tree] = []
    resources: dict[str, str] = {"cpu": random.choice(["100m", "1", "3"])}
    for number in range(random.choice([0, 1, 1, 1, 2])):
        if random.random() < 0.6:
            source = {"resourceClaimTemplateName": random.choice([*TEMPLATES])}
        else:
            source = {"resourceClaimName": random.choice([*CLAIMS])}
        entries.append({"name": f"e-{number}", **source})
    if extended and random.random() < (0.2 if entries else 0.6):
        resources[RESOURCE] = random.choice(["1", "1", "2"])
    return _pod(name, entries, resources, schedulerName=scheduler)


def template_pod(name: str, template_name: str) -> Pod:
    """Return a pod with one claim from a template, which needs no kubelet to go."""
    entry = {"name": "e-0", "resourceClaimTemplateName": template_name}
    return _pod(name, [entry], {"cpu": "100m"}, terminationGracePeriodSeconds=0)


def member(name: str, group_name: str, entries: list[Tree]) -> Pod:
    """Return a pod of a group."""
    return _pod(name, entries, {"cpu": "500m"}, schedulingGroup={"podGroupName": group_name})


def _pod(name: str, entries: list[Tree], resources: dict[str, str], **more: Any) -> Pod:
    container = {
        "name": "main",
        "image": "app",
        "resources": {
            "requests": resources,
            "limits": {RESOURCE: resources[RESOURCE]} if RESOURCE in resources else {},
            "claims": [{"name": entry["name"]} for entry in entries],
        },
    }
    spec = {
        "containers": [container],
        "resourceClaims": entries,
        "schedulerName": SCHEDULERS[0],
        **more,
    }
    found: Pod = _made(Pod, name, spec=spec, status={"phase": "Pending"})
    return found


def group(name: str, least: int, entries: list[Tree]) -> PodGroup:
    """Return a group of pods that go together."""
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}, "resourceClaims": entries}
    found: PodGroup = _made(PodGroup, name, spec=spec)
    # As the server does with every group.
    return replace(found, metadata=replace(found.metadata, finalizers=(PROTECTION_FINALIZER,)))
