"""Pods, groups, claims and classes to try the rules of claims on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.core.resources import ResourceList
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate
from moorage.api.scheduling import PodGroup
from moorage.claims import DeviceClassIndex

Tree = dict[str, Any]

NOW = "2026-01-01T00:00:00Z"

BY_NAME = {"name": "r", "resourceClaimName": "shared"}
BY_TEMPLATE = {"name": "r", "resourceClaimTemplateName": "t"}


def pod(
    name: str = "p",
    *,
    claims: Iterable[Tree] = (),
    made: Tree | None = None,
    group: str | None = None,
    containers: Iterable[Tree] = ({"name": "c"},),
    status: Tree | None = None,
    metadata: Tree | None = None,
    **spec: Any,
) -> Pod:
    """Return a pod; made says which claims its status names, by entry."""
    tree = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid", **(metadata or {})},
        "spec": {"containers": list(containers), "resourceClaims": list(claims), **spec},
        "status": dict(status or {}),
    }
    if made is not None:
        tree["status"]["resourceClaimStatuses"] = statuses(made)
    if group is not None:
        tree["spec"]["schedulingGroup"] = {"podGroupName": group}
    return decode_tree(tree, Pod).value


def statuses(made: Tree) -> list[Tree]:
    """Return the entries of a status: claims by the name of the entry, None for none needed."""
    return [
        {"name": name} if claim is None else {"name": name, "resourceClaimName": claim}
        for name, claim in made.items()
    ]


def group(name: str = "g", *, claims: Iterable[Tree] = (), made: Tree | None = None) -> PodGroup:
    """Return a group of pods."""
    tree = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid"},
        "spec": {"resourceClaims": list(claims)},
        "status": {"resourceClaimStatuses": statuses(made or {})},
    }
    return decode_tree(tree, PodGroup).value


def claim(name: str = "shared", *, status: Tree | None = None, **metadata: Any) -> ResourceClaim:
    """Return a claim."""
    tree = {"metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid", **metadata}}
    return decode_tree({**tree, "status": status or {}}, ResourceClaim).value


def owned_by(name: str, kind: str = "Pod", *, controller: bool = True, uid: str = "") -> list[Tree]:
    """Return the owner references of a claim that was made for a pod or group."""
    version = "v1" if kind == "Pod" else "scheduling.k8s.io/v1alpha3"
    uid = uid or f"{name}-uid"
    return [
        {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controller}
    ]


def for_pod(name: str) -> Tree:
    """Return a reservation for a pod."""
    return {"resource": "pods", "name": name, "uid": f"{name}-uid"}


def for_group(name: str) -> Tree:
    """Return a reservation for a group."""
    group = "scheduling.k8s.io"
    return {"apiGroup": group, "resource": "podgroups", "name": name, "uid": f"{name}-uid"}


def template(*requests: Tree, **metadata: Any) -> ResourceClaimTemplate:
    """Return a template with requests; metadata is that of the claims to be made."""
    spec = {"metadata": metadata, "spec": {"devices": {"requests": list(requests)}}}
    return decode_tree({"metadata": {"name": "t"}, "spec": spec}, ResourceClaimTemplate).value


def device_class(name: str, resource: str | None = None, *, created: str = NOW) -> DeviceClass:
    """Return a class, with the name of an extended resource or without."""
    spec = {} if resource is None else {"extendedResourceName": resource}
    tree = {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}
    return decode_tree(tree, DeviceClass).value


def index(*classes: DeviceClass) -> DeviceClassIndex:
    """Return an index of these classes."""
    found = DeviceClassIndex()
    for each in classes:
        found.put_class(each)
    return found


def asking(name: str, *, sidecar: bool = False, **fields: Any) -> Tree:
    """Return a container that asks for resources, in numbers or texts."""
    requests = {key: str(amount) for key, amount in fields.pop("requests", {}).items()}
    policy = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, **policy, "resources": {"requests": requests, **fields}}


def amounts(**texts: str) -> ResourceList:
    """Return amounts of resources."""
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in texts.items()}
