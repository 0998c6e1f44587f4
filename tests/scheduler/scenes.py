"""Short builders of clusters with devices, and the placement of pods in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import ALL_FEATURES, Features
from moorage.scheduler.reservation import IdSource, Reservation, reserve
from moorage.scheduler.scheduling_cycle import Pending, Placed, schedule
from tests.scheduler.makers import pod

GPU = "gpu.example.com"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
Devices = DeviceClass | DeviceTaintRule | ResourceSlice | ResourceClaim
Object = Node | Devices | PodGroup | CompositePodGroup | Pod


def device_class(name: str = "gpu", *, created: str | None = None, **spec: Any) -> DeviceClass:
    metadata = {"name": name} | ({"creationTimestamp": created} if created else {})
    return decode_tree({"metadata": metadata, "spec": spec}, DeviceClass).value


def devices(number: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"gpu-{index}", **fields} for index in range(number)]


def slice_of(
    node: str,
    number: int = 1,
    *,
    name: str | None = None,
    pool: str | None = None,
    where: Mapping[str, Any] | None = None,
    listed: Sequence[Mapping[str, Any]] | None = None,
    **fields: Any,
) -> ResourceSlice:
    """Return a slice that is a whole pool; of the node, or of where else it says."""
    spec = {
        "driver": GPU,
        "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": 1},
        "devices": devices(number, **fields) if listed is None else list(listed),
        **({"nodeName": node} if where is None else where),
    }
    return decode_tree(
        {"metadata": {"name": name or f"{node}-gpu"}, "spec": spec}, ResourceSlice
    ).value


def wanting(number: int = 1, *, name: str = "gpu", device_class: str = "gpu") -> dict[str, Any]:
    """Return a request."""
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": number}
    return {"name": name, "exactly": exactly}


def claim(
    name: str,
    *requests: Mapping[str, Any],
    has: Sequence[tuple[str, str]] = (),
    at: Mapping[str, Any] | None = None,
    reserved: Sequence[str] = (),
    results: Mapping[str, Any] | None = None,
    timestamp: str | None = None,
    statuses: Sequence[Mapping[str, Any]] = (),
    **metadata: Any,
) -> ResourceClaim:
    """Return a claim; `has` are pools and devices, `at` is the node selector of the allocation."""
    status: dict[str, Any] = {}
    if has:
        given = [
            {"request": "gpu", "driver": GPU, "pool": pool, "device": device, **(results or {})}
            for pool, device in has
        ]
        status["allocation"] = {"devices": {"results": given}}
        if at is not None:
            status["allocation"]["nodeSelector"] = at
        if timestamp is not None:
            status["allocation"]["allocationTimestamp"] = timestamp
    if reserved:
        status["reservedFor"] = [
            {"resource": "pods", "name": each, "uid": f"default/{each}"} for each in reserved
        ]
    if statuses:
        status["devices"] = list(statuses)
    tree = {
        "metadata": {"name": name, "namespace": "default", "uid": f"claim-{name}", **metadata},
        "spec": {"devices": {"requests": list(requests) or [wanting()]}},
        "status": status,
    }
    return decode_tree(tree, ResourceClaim).value


def only_on(*nodes: str) -> dict[str, Any]:
    """Return the selector of nodes by name."""
    named = {"key": "metadata.name", "operator": "In", "values": list(nodes)}
    return {"nodeSelectorTerms": [{"matchFields": [named]}]}


def taint_rule(name: str = "rule", **selector: Any) -> DeviceTaintRule:
    taint = {"key": "broken", "effect": "NoSchedule"}
    tree = {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}}
    return decode_tree(tree, DeviceTaintRule).value


def group(name: str = "gang", *, least: int = 2, **spec: Any) -> PodGroup:
    policy = {"gang": {"minCount": least}}
    tree = {
        "metadata": {"name": name, "namespace": "default", "uid": f"group-{name}"},
        "spec": {"schedulingPolicy": policy, **spec},
    }
    return decode_tree(tree, PodGroup).value


def composite(name: str = "set", *, least: int = 2, **spec: Any) -> CompositePodGroup:
    tree = {
        "metadata": {"name": name, "namespace": "default", "uid": f"composite-{name}"},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": least}}, **spec},
    }
    return decode_tree(tree, CompositePodGroup).value


def user(name: str, *claims: str, **more: Any) -> Pod:
    """Return a pod that uses claims by their names."""
    entries = [
        {"name": f"claim-{number}", "resourceClaimName": each} for number, each in enumerate(claims)
    ]
    return pod(name, resourceClaims=entries, **more)


def cluster(
    *objects: Object, features: Features = ALL_FEATURES, now: datetime | None = NOW
) -> Cluster:
    made = Cluster(features, now=now)
    put(made, objects)
    return made


def put(made: Cluster, objects: Iterable[Object]) -> None:
    for each in objects:
        match each:
            case Node():
                made.put_node(each)
            case DeviceClass():
                made.put_class(each)
            case DeviceTaintRule():
                made.put_taint_rule(each)
            case ResourceSlice():
                made.put_slice(each)
            case ResourceClaim():
                made.put_claim(each)
            case PodGroup() | CompositePodGroup():
                made.put_group(each)
            case Pod():
                made.put_pod(each)


def new_names() -> IdSource:
    numbers = count(1)
    return IdSource(lambda: f"share-{next(numbers)}", lambda prefix: f"{prefix}{next(numbers)}")


def placed(made: Cluster, one: Pod, names: IdSource | None = None) -> Reservation:
    """Schedule a pod that fits and write what was decided."""
    outcome = schedule(made, one)
    assert isinstance(outcome, Placed), outcome
    return reserve(made, outcome, names or new_names())


def refused(made: Cluster, one: Pod) -> Pending:
    outcome = schedule(made, one)
    assert isinstance(outcome, Pending), outcome.node
    return outcome


def reasons(made: Cluster, one: Pod) -> dict[str, tuple[str, ...]]:
    """Return what nodes say to a pod that none of them takes."""
    return {
        name: said.reasons for name, said in refused(made, one).diagnosis.node_to_status.items()
    }


def devices_of(reservation: Reservation) -> list[str]:
    """Return the devices that the pod's claims have, with their pools."""
    return sorted(
        f"{result.pool}/{result.device}"
        for each in reservation.claims
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    )
