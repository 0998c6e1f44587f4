"""The scheduler's cluster, changed for a rehearsal; each change is undone when the stack closes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Node
from moorage.api.core.placement import Affinity
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim
from moorage.api.scheduling import PodGroup
from moorage.scheduler.cluster import Cluster


def put_object(cluster: Cluster, value: Any, undo: ExitStack) -> None:
    """Put a changed object, if it is of a kind that the scheduler knows by itself."""
    if isinstance(value, DeviceClass):
        name = value.metadata.name
        before = cluster.inventory.device_class(name)
        cluster.put_class(value)
        if before is None:
            undo.callback(cluster.remove_class, name)
        else:
            undo.callback(cluster.put_class, before)
    elif isinstance(value, Node):
        node = cluster.node(value.metadata.name)
        cluster.put_node(value)
        undo.callback(cluster.put_node, node)
    elif isinstance(value, PodGroup):
        group = cluster.groups.get((value.metadata.namespace, value.metadata.name))
        cluster.put_group(value)
        if group is None:
            undo.callback(cluster.remove_group, value)
        else:
            undo.callback(cluster.put_group, group)


def put_claim(cluster: Cluster, claim: ResourceClaim, undo: ExitStack) -> None:
    """Put a claim."""
    key = claim.metadata.namespace, claim.metadata.name
    before = cluster.find_claim(*key)
    cluster.put_claim(claim)
    if before is None:
        undo.callback(cluster.remove_claim, *key)
    else:
        undo.callback(cluster.put_claim, before)


def remove_claim(cluster: Cluster, claim: ResourceClaim, undo: ExitStack) -> None:
    """Remove a claim."""
    cluster.remove_claim(claim.metadata.namespace, claim.metadata.name)
    undo.callback(cluster.put_claim, claim)


def put_affinity(cluster: Cluster, pod: Pod, affinity: Affinity | None, undo: ExitStack) -> None:
    """Give a pod with a node another affinity, as a changed workload does."""
    if pod.spec.affinity != affinity:
        cluster.put_pod(replace(pod, spec=replace(pod.spec, affinity=affinity)))
        undo.callback(cluster.put_pod, pod)
