"""Small clusters for the tests of device usage."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Node, Pod
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.insight.devices import ClusterUsage, DeviceUsage

GPU = "gpu.example.com"


def node(name: str = "n1", *, declared: list[str] | None = None, **labels: str) -> Node:
    status = {"declaredFeatures": declared or []}
    return decode_tree({"metadata": {"name": name, "labels": labels}, "status": status}, Node).value


def slice_of(
    *devices: str | dict[str, Any],
    name: str = "s1",
    pool: str = "n1",
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """Return a slice for the node that has the name of the pool, unless the spec says otherwise."""
    if not spec.keys() & {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}:
        spec["nodeName"] = pool
    entries = [{"name": each} if isinstance(each, str) else each for each in devices]
    about = {"name": pool, "generation": generation, "resourceSliceCount": count}
    content = {"driver": GPU, "pool": about, "devices": entries or None, **spec}
    return decode_tree({"metadata": {"name": name}, "spec": content}, ResourceSlice).value


def result(device: str, *, pool: str = "n1", request: str = "r", **fields: Any) -> dict[str, Any]:
    return {"request": request, "driver": GPU, "pool": pool, "device": device, **fields}


def share(number: int, device: str, **consumed: str) -> dict[str, Any]:
    return result(device, shareID=f"share-{number}", consumedCapacity=consumed)


def claim_of(
    name: str, *results: dict[str, Any], pods: tuple[str, ...] = (), **tree: Any
) -> ResourceClaim:
    reserved = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    status: dict[str, Any] = {"reservedFor": reserved}
    if results:
        status["allocation"] = {"devices": {"results": list(results)}}
    about = {"name": name, "namespace": "ns", **tree.pop("metadata", {})}
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]
    whole = {
        "metadata": about,
        "spec": {"devices": {"requests": requests}},
        "status": {**status, **tree.pop("status", {})},
        **tree,
    }
    return decode_tree(whole, ResourceClaim).value


def class_of(name: str, expression: str) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return decode_tree({"metadata": {"name": name}, "spec": spec}, DeviceClass).value


def rule_of(name: str, effect: str = "NoSchedule", **selector: Any) -> DeviceTaintRule:
    spec = {"deviceSelector": selector, "taint": {"key": "k", "value": "v", "effect": effect}}
    return decode_tree({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule).value


def pod_of(name: str, *, node_name: str = "", **spec: Any) -> Pod:
    tree = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"nodeName": node_name, **spec},
    }
    return decode_tree(tree, Pod).value


def by_name(holdings: ClusterUsage) -> dict[str, DeviceUsage]:
    return {each.id.device: each for each in holdings.devices}


def states(holdings: ClusterUsage) -> dict[str, str]:
    return {each.id.device: each.state.value for each in holdings.devices}
