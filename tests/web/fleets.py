"""Small fleets for tests of the page, and fleets as names say them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moorage.api.core import Node, Pod
from moorage.api.core.node import NodeSpec
from moorage.api.core.pod import PodCondition, PodResourceClaim, PodSpec, PodStatus
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from moorage.api.timestamp import Timestamp
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context
from moorage.web.feed import Feed, SourceFacts
from moorage.web.fleet import Fleet
from tests.insight.topologies import claim, device, node, result, slice_of

NOW = Timestamp(datetime(2026, 1, 31, 12, tzinfo=UTC))
CONTEXT = Context(gates=Gates.parse(), now=NOW)
GPU = "gpu.example.com"


def machine(name: str, gpus: int = 2) -> list[Any]:
    """Return a node and a slice of GPUs on two NUMA nodes."""
    devices = [device(f"gpu-{n}", {"numaNode": n % 2, "pcieRoot": f"pci{n}"}) for n in range(gpus)]
    return [node(name), slice_of(*devices, pool=name, name=f"slice-{name}")]


def holding(name: str, *devices: str, pool: str = "n1", pods: tuple[str, ...] = ()) -> Any:
    """Return a claim that has devices of a pool."""
    return claim(name, *(result(each, pool=pool) for each in devices), pods=pods)


def waiting(name: str, message: str = "", count: int = 9, namespace: str = "team") -> list[Any]:
    """Return a pending pod, and its claim for so many GPUs."""
    request = DeviceRequest(
        name="r",
        exactly=ExactDeviceRequest(
            device_class_name="gpu", allocation_mode="ExactCount", count=count
        ),
    )
    wanted = ResourceClaim(
        metadata=ObjectMeta(name=f"{name}-gpus", namespace=namespace, uid=f"claim-{name}"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )
    condition = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    pod = Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"pod-{name}"),
        spec=PodSpec(
            resource_claims=(PodResourceClaim(name="g", resource_claim_name=wanted.metadata.name),),
            scheduler_name="default-scheduler",
        ),
        status=PodStatus(phase="Pending", conditions=(condition,) if message else ()),
    )
    return [wanted, pod]


def cordoned(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name), spec=NodeSpec(unschedulable=True))


GPUS = DeviceClass(metadata=ObjectMeta(name="gpu"))
SMALL = [GPUS, *machine("n1"), *machine("n2"), holding("busy", "gpu-0"), *waiting("big")]


def feed_of(objects: list[Any], *, revision: int = 1, is_live: bool = False) -> Feed:
    feed = Feed(SourceFacts("test", "files", is_live=is_live), CONTEXT)
    feed.publish(objects, revision=revision, time=NOW)
    return feed


def snapshot(*objects: Any) -> Snapshot:
    return Snapshot.of(objects)


def told(fleet: Fleet) -> dict[str, Any]:
    """Return a fleet with names instead of numbers, whatever its rows are."""
    names, tables = fleet.strings, fleet.tables
    nodes = [names[each] for each in tables["nodes"]["name"]]
    devices = [
        "/".join(names[each] for each in row)
        for row in zip(*(tables["devices"][key] for key in ("driver", "pool", "name")), strict=True)
    ]
    claims = _full_names(fleet, "claims")
    pods = _full_names(fleet, "pods")

    def of(known: list[str], row: int) -> str:
        return known[row] if row >= 0 else ""

    return {
        "nodes": {
            name: (names[zone], state, count)
            for name, zone, state, count in zip(nodes, *_rest(fleet, "nodes", 1), strict=True)
        },
        "devices": {
            name: (of(nodes, row[0]), row[4], names[row[5]], *row[6:8], of(devices, row[8]), row[9])
            for name, row in zip(
                devices, zip(*tables["devices"].values(), strict=True), strict=True
            )
        },
        "holdings": {
            (devices[device], of(claims, claim)): share
            for device, claim, share in zip(*tables["holdings"].values(), strict=True)
            if device >= 0
        },
        "claims": {
            name: (created, of(pods, pod))
            for name, created, pod in zip(claims, *_rest(fleet, "claims", 2), strict=True)
            if name
        },
        "pods": {
            name: (of(nodes, node_row), state, _cause(fleet, group))
            for name, node_row, state, _, group in zip(pods, *_rest(fleet, "pods", 2), strict=True)
            if name
        },
        "groups": {(each.cause, each.count, each.wants) for each in fleet.groups},
    }


def _rest(fleet: Fleet, table: str, skipped: int) -> list[list[int]]:
    return list(fleet.tables[table].values())[skipped:]


def _full_names(fleet: Fleet, table: str) -> list[str]:
    columns = fleet.tables[table]
    pairs = zip(columns["namespace"], columns["name"], strict=True)
    return [f"{fleet.strings[s]}/{fleet.strings[n]}" if n else "" for s, n in pairs]


def _cause(fleet: Fleet, group: int) -> str:
    return fleet.groups[group].cause if group >= 0 else ""
