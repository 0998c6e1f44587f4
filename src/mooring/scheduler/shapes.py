"""Shapes of pods, each prepared once.

Pods of one template differ in name, node and mounted tokens, none of which decides where they go.
What does decide is written down as bytes, for some µs; pods with the same bytes share a shape.
"""

from __future__ import annotations

from collections import OrderedDict
from operator import attrgetter, is_
from typing import Any

import msgspec

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import ContainerStatus
from mooring.api.labels import EVERYTHING, Selector
from mooring.api.quantity import Quantity
from mooring.claims.owners import group_name
from mooring.claims.resizes import RESIZE_PENDING
from mooring.scheduler.shape import (
    DEFAULT_SETTINGS,
    Occupant,
    PodShape,
    Settings,
    prepare,
)

SHAPES_MAX = 8192


class Shapes:
    """A memory of shapes; the one that was not used for longest is forgotten first."""

    def __init__(self, settings: Settings = DEFAULT_SETTINGS, *, shapes_max: int = SHAPES_MAX):
        self.settings = settings
        self.prepared = 0
        self._shapes_max = shapes_max
        self._known: OrderedDict[tuple[bytes, Selector], PodShape] = OrderedDict()
        # What the last pod's shape is made from: it often comes again at once, with its node.
        self._last: tuple[tuple[object, ...], bytes] = ((), b"")

    def of(self, pod: Pod, *, spread_selector: Selector = EVERYTHING) -> PodShape:
        """Return the shape of a pod that looks for a node."""
        return self._shape(pod, pod.spec.node_name, spread_selector)

    def occupant(self, pod: Pod) -> Occupant:
        """Return a pod that is on a node, whichever it is."""
        started = pod.status.start_time
        return Occupant(
            key=key_of(pod),
            shape=self._shape(pod, "", EVERYTHING),
            is_terminating=pod.metadata.deletion_timestamp is not None,
            name=pod.metadata.name,
            priority=pod.spec.priority or 0,
            started=None if started is None else started.instant,
            group=group_name(pod),
        )

    def _shape(self, pod: Pod, node_name: str, spread_selector: Selector) -> PodShape:
        key = (self._content(pod, node_name), spread_selector)
        shape = self._known.get(key)
        if shape is not None:
            self._known.move_to_end(key)
            return shape
        if node_name != pod.spec.node_name:
            spec = msgspec.structs.replace(pod.spec, node_name=node_name)
            pod = msgspec.structs.replace(pod, spec=spec)
        shape = prepare(pod, self.settings, spread_selector=spread_selector)
        self.prepared += 1
        self._known[key] = shape
        if len(self._known) > self._shapes_max:
            self._known.popitem(last=False)
        return shape

    def _content(self, pod: Pod, node_name: str) -> bytes:
        parts = (node_name, *_parts(pod.metadata), *_parts_of_spec(pod.spec), pod.status)
        known, content = self._last
        if len(parts) != len(known) or not all(map(is_, parts, known)):
            content = _encoder.encode(_essence(pod, node_name))
            self._last = (parts, content)
        return content


def key_of(pod: Pod) -> str:
    """Return what tells a pod from all others."""
    metadata = pod.metadata
    return metadata.uid or f"{metadata.namespace}/{metadata.name}"


# All that `_essence` reads, besides the status.
_parts = attrgetter("namespace", "labels")
_parts_of_spec = attrgetter(
    "init_containers",
    "containers",
    "volumes",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
    "overhead",
    "resources",
    "scheduler_name",
    "runtime_class_name",
    "scheduling_gates",
    "host_network",
    "host_users",
)


def _essence(pod: Pod, node_name: str) -> Any:
    """Return what a shape is made from, and nothing else."""
    spec, status = pod.spec, pod.status
    return (
        node_name,
        pod.metadata.namespace,
        pod.metadata.labels,
        [_of_container(container) for container in spec.init_containers],
        [_of_container(container) for container in spec.containers],
        [volume for volume in spec.volumes if _matters(volume)],
        (spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints),
        (spec.overhead, spec.resources, spec.scheduler_name, spec.runtime_class_name),
        (spec.scheduling_gates, spec.host_network, spec.host_users),
        (status.allocated_resources, status.resources),
        status.node_allocatable_resource_claim_statuses,
        [_of_status(one) for one in status.init_container_statuses],
        [_of_status(one) for one in status.container_statuses],
        [one.reason for one in status.conditions if one.type == RESIZE_PENDING],
    )


def _of_container(container: Container) -> Any:
    mounts = [m for m in container.volume_mounts if isinstance(m, dict) and "bindMountOptions" in m]
    return (
        (container.name, container.image, container.restart_policy, container.ports),
        (container.resources, container.restart_policy_rules, mounts),
    )


def _of_status(status: ContainerStatus) -> Any:
    return (status.name, status.allocated_resources, status.resources)


def _matters(volume: Any) -> bool:
    """Return whether a volume can decide; tokens, whose names are made up, cannot."""
    return isinstance(volume, dict) and "projected" not in volume


def _text(value: Any) -> str:
    assert isinstance(value, Quantity)
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_text, order="deterministic")
