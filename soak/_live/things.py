"""What there can be in a cluster: three nodes, classes, rules, claims and pods."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core import ResourceQuota
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
)
from moorage.api.scheduling import PROTECTION_FINALIZER, CompositePodGroup, PodGroup
from soak._live.pools import CORES, FABRIC, GPU, MIG, NIC, POOLS, made

Tree = dict[str, Any]

CPUS = 4  # of each node
RESOURCE = "example.com/gpu"
DRIVERS = {"gpu": GPU, "nic": NIC, "mig": MIG, "fabric": FABRIC, "cores": CORES}
WORKLOAD = {"workloadName": "work", "templateName": "part"}
APPS = ("db", "web")  # labels of pods that others want to be near, or away from
ZONE = "zone"  # the label by which groups may have to stay together
PRIORITIES = (0, 0, 0, 0, 10, 100)
SCHEDULERS = ("default-scheduler", "second-scheduler")
NAMES = tuple(f"p-{number}" for number in range(12))
CLAIMS: dict[str, Tree] = {
    "c-gpu": {"class": "gpu"},
    "c-two": {"class": "gpu", "count": 2},
    "c-nic": {"class": "nic", "capacity": "4"},
    "c-mig": {"class": "mig"},
    "c-fabric": {"class": "fabric"},
    "c-cores": {"class": "cores"},
    "c-admin": {"class": "gpu", "is_admin": True},
}


# --- nodes, classes and rules -------------------------------------------------------------------


def node(name: str) -> Node:
    """Return a node."""
    zone = "z-0" if name == "node-1" else "z-1"
    tree = {"kubernetes.io/hostname": name, ZONE: zone}
    allocatable = {"cpu": str(CPUS), "memory": "16Gi", "pods": "20"}
    found: Node = decode_tree(
        {"metadata": {"name": name, "labels": tree}, "status": {"allocatable": allocatable}}, Node
    ).value
    return found


def device_class(name: str, random: Random | None = None) -> DeviceClass:
    """Return a class, sometimes one that selects nothing, or without its extended resource."""
    expression = f'device.driver == "{DRIVERS[name]}"'
    if random is not None and random.random() < 0.3:
        expression = "false"
    spec: Tree = {"selectors": [{"cel": {"expression": expression}}]}
    if name == "gpu" and (random is None or random.random() < 0.8):
        spec["extendedResourceName"] = RESOURCE
    found: DeviceClass = made(DeviceClass, name, is_global=True, spec=spec)
    return found


def taint_rule(name: str, random: Random) -> DeviceTaintRule:
    """Return a rule for a pool, a driver or a device."""
    driver, pool = random.choice(POOLS)
    selector = random.choice([{"driver": driver}, {"driver": driver, "pool": pool}])
    taint = {"key": "broken", "effect": random.choice(["NoSchedule", "NoExecute", "None"])}
    spec = {"deviceSelector": selector, "taint": taint}
    found: DeviceTaintRule = made(DeviceTaintRule, name, is_global=True, spec=spec)
    return found


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
    if wanted.get("is_admin"):
        exactly["adminAccess"] = True
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
    "t-fabric": {"class": "fabric"},
    "t-cores": {"class": "cores"},
    "t-admin": {"class": "gpu", "is_admin": True},
}


def claim(name: str) -> ResourceClaim:
    """Return one of the claims that pods share by name."""
    devices = {"requests": [request(CLAIMS[name])]}
    found: ResourceClaim = made(ResourceClaim, name, spec={"devices": devices})
    return found


def template(name: str) -> ResourceClaimTemplate:
    """Return a template."""
    spec = {"spec": {"devices": {"requests": [request(TEMPLATES[name])]}}}
    found: ResourceClaimTemplate = made(ResourceClaimTemplate, name, spec=spec)
    return found


def quota(random: Random) -> ResourceQuota:
    """Return a quota of gpus."""
    hard = {"gpu.deviceclass.resource.k8s.io/devices": str(random.randint(0, 6))}
    found: ResourceQuota = made(ResourceQuota, "quota", spec={"hard": hard})
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
    priority = random.choice(PRIORITIES)
    labels, company = {"app": random.choice(APPS)}, _company(random)
    found = _pod(name, entries, resources, schedulerName=scheduler, priority=priority, **company)
    return replace(found, metadata=replace(found.metadata, labels=labels))


def _company(random: Random) -> Tree:
    """Return which other pods a pod wants to be near, or away from, if any."""
    selected = {"labelSelector": {"matchLabels": {"app": random.choice(APPS)}}}
    key = random.choice(["kubernetes.io/hostname", ZONE])
    chance = random.random()
    if chance < 0.1:
        spread = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return {"topologySpreadConstraints": [{**spread, **selected}]}
    if chance > 0.3:
        return {}
    kind = "podAffinity" if chance < 0.2 else "podAntiAffinity"
    terms = [{**selected, "topologyKey": key}]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def template_pod(name: str, template_name: str) -> Pod:
    """Return a pod with one claim from a template, which needs no kubelet to go."""
    entry = {"name": "e-0", "resourceClaimTemplateName": template_name}
    return _pod(name, [entry], {"cpu": "100m"}, terminationGracePeriodSeconds=0)


def member(name: str, group_name: str, entries: list[Tree], **spec: Any) -> Pod:
    """Return a pod of a group."""
    of = {"podGroupName": group_name}
    return _pod(name, entries, {"cpu": "500m", **spec.pop("more", {})}, schedulingGroup=of, **spec)


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
    found: Pod = made(Pod, name, spec=spec, status={"phase": "Pending"})
    return found


def composite(name: str, least: int, priority: int) -> CompositePodGroup:
    """Return a group of groups that go together."""
    policy = {"gang": {"minGroupCount": least}}
    spec = {"schedulingPolicy": policy, "workloadRef": WORKLOAD, "priority": priority}
    found: CompositePodGroup = made(CompositePodGroup, name, spec=spec)
    return found


def group(name: str, least: int, entries: list[Tree], **more: Any) -> PodGroup:
    """Return a group of pods that go together."""
    policy = {"gang": {"minCount": least}}
    spec = {"schedulingPolicy": policy, "resourceClaims": entries, **more}
    found: PodGroup = made(PodGroup, name, spec=spec)
    # As the server does with every group.
    return replace(found, metadata=replace(found.metadata, finalizers=(PROTECTION_FINALIZER,)))
