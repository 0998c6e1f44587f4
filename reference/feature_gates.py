"""The reference page of feature gates, made from moorage.api.gates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from moorage.api.gates import CURRENT, HISTORY, INERT, NEEDS, Gate, Spec, Stage, spec_of
from reference.markdown import MADE, page_of, table_of

# The effect of each gate, in one place; a test finds gates without a text.
GATE_PURPOSES: dict[Gate, str] = {
    Gate.ALL_ALPHA: "all alpha gates that are not named themselves",
    Gate.ALL_BETA: "all beta gates that are not named themselves",
    Gate.COMPOSITE_POD_GROUP: "CompositePodGroup, and groups that belong to one",
    Gate.DRA_ADMIN_ACCESS: "requests with `adminAccess`, which see devices that are in use",
    Gate.DRA_CONSUMABLE_CAPACITY: "devices that several claims share, each with some capacity",
    Gate.DRA_DERIVED_ATTRIBUTES: "attributes that a claim computes with CEL and compares",
    Gate.DRA_DEVICE_BINDING_CONDITIONS: "devices that must become ready before a pod is bound",
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS: "groups of partitions that may be in use together",
    Gate.DRA_DEVICE_TAINT_RULES: "DeviceTaintRule: taints that an administrator puts on devices",
    Gate.DRA_DEVICE_TAINTS: "taints of devices in slices, and tolerations of requests",
    Gate.DRA_EXTENDED_RESOURCE: "extended resources of containers served by a DeviceClass",
    Gate.DRA_FRACTIONAL_CAPACITY_RANGE: "ranges of shared capacity in steps of milli units",
    Gate.DRA_LIST_TYPE_ATTRIBUTES: "attributes whose value is a list",
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES: "devices that stand for CPU or memory of their node",
    Gate.DRA_OPTIONAL_NODE_OPERATIONS: "slices whose devices need no preparing on the node",
    Gate.DRA_PARTITIONABLE_DEVICES: "devices that are made from shared counters",
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE: "the attribute that names the type of a partition",
    Gate.DRA_PRIORITIZED_LIST: "requests with `firstAvailable`, a list of alternatives",
    Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS: "what drivers report of devices in a claim's status",
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION: (
        "permissions for each part of a claim's status"
    ),
    Gate.DRA_RESOURCE_POOL_STATUS: "ResourcePoolStatusRequest: a question about free devices",
    Gate.DRA_SCHEDULER_FILTER_TIMEOUT: "a bound on the time that the search for devices takes",
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: "claims that all pods of a PodGroup share",
    Gate.DYNAMIC_RESOURCE_ALLOCATION: "Dynamic Resource Allocation as a whole",
    Gate.GENERIC_WORKLOAD: "Workload and PodGroup, and pods that belong to one",
    Gate.KUBELET_POD_RESOURCES_DYNAMIC_RESOURCES: "claims in the kubelet's PodResources API",
    Gate.KUBELET_POD_RESOURCES_GET: "asking the kubelet's PodResources API for one pod",
    Gate.KUBELET_POD_RESOURCES_LIST_USE_ACTIVE_PODS: (
        "only running pods in the kubelet's PodResources API"
    ),
    Gate.NODE_DECLARED_FEATURES: "features that a node declares in its status",
    Gate.WORKLOAD_WITH_JOB: "`scheduling` of Jobs, which makes a Workload for their pods",
    Gate.POD_GROUP_PREEMPTION_POLICY: "`preemptionPolicy` of a PodGroup",
    Gate.RESOURCE_HEALTH_STATUS: "the health of devices in a pod's status",
    Gate.RESOURCE_HEALTH_STATUS_MESSAGE: "a message with the health of a device",
    Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (
        "`schedulingConstraints` of a PodGroup, and messages that count placements"
    ),
}

_GATES_INTRODUCTION = """\
The gates of Kubernetes 1.37 that switch something in Moorage.
[How to choose gates and versions](../how-to/choose-gates.md) tells how to set them.

- *Stage* and *default* are those of Kubernetes 1.37; `--gates-preset kubernetes-1.37` gives them.
  With Moorage's own preset every gate is on.
- A *locked* gate cannot be switched.
- *Since* tells in which version the gate came to each stage.
- *Needs*: the gate can only be on while these are."""

_INERT_INTRODUCTION = """\
## Gates without effect

`--feature-gates` takes every other gate of Kubernetes 1.37 too, so that a flag can be shared with a
cluster. Such a gate is checked as Kubernetes checks it (known in the emulated version, not locked
against the value, its needs on) and then has no effect: the command says so. They are"""

_STAGE_NAMES = {
    Stage.ALPHA: "alpha",
    Stage.BETA: "beta",
    Stage.GA: "stable",
    Stage.DEPRECATED: "deprecated",
}


def gates_page() -> str:
    """Return the page of all feature gates."""
    columns = ("gate", "switches", "stage", "default", "locked", "since", "needs")
    sections = [
        "# Feature gates",
        MADE,
        _GATES_INTRODUCTION,
        table_of(columns, map(_gate_row, HISTORY)),
        _INERT_INTRODUCTION,
        f"{', '.join(f'`{name}`' for name in INERT)}.",
    ]
    return page_of(sections)


def _gate_row(gate: Gate) -> tuple[str, ...]:
    spec = spec_of(gate, CURRENT)
    return (
        f"`{gate}`",
        GATE_PURPOSES[gate],
        _STAGE_NAMES[spec.stage],
        "on" if spec.default else "off",
        "yes" if spec.locked else "",
        ", ".join(_stages(HISTORY[gate])),
        ", ".join(f"`{need}`" for need in NEEDS.get(gate, ())),
    )


def _stages(history: tuple[Spec, ...]) -> Iterator[str]:
    """Give each stage of a gate once, with the version it came in."""
    for stage, specs in groupby(history, key=attrgetter("stage")):
        first: Spec = next(iter(specs))
        if first.minor:  # Gates that always were have no version.
            yield f"{_STAGE_NAMES[stage]} 1.{first.minor}"
