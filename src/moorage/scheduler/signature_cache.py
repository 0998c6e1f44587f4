"""Pods are read once for all alike.

What decides about a pod is encoded as bytes, for some µs; pods with the same bytes share a
signature, so a thousand of them are read once. Pods of a stateful set or an indexed job differ in a
label: they have a signature each, but their containers are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter, is_
from typing import Any

import msgspec

from moorage.api.core.pod import DISRUPTION_TARGET, Container, ContainerStatus, Pod
from moorage.api.labels import EVERYTHING, Selector
from moorage.claims.pod_claims import controller_of, group_name
from moorage.claims.pod_resources import RESIZE_PENDING
from moorage.kit.lru import LRU
from moorage.scheduler.pod_signature import (
    DEFAULT_SETTINGS,
    PodAmounts,
    PodInfo,
    PodSignature,
    ReadingSettings,
    pod_key,
    read_amounts,
    sign,
)

# By plugin; they read nothing that `_parts_of_spec` does not name.
PodReaders = Mapping[str, Callable[[Pod], Hashable]]

SIGNATURES_MAX = 8192
SIGNATURES_BYTES_MAX = 16 * 2**20  # of the fields that they are made of
PREEMPTED = "PreemptionByScheduler"  # the reason of the condition of victims
NO_READERS: PodReaders = {}


class SignatureCache:
    """Signatures of pods; the least recently used one is evicted first."""

    def __init__(
        self,
        settings: ReadingSettings = DEFAULT_SETTINGS,
        readers: PodReaders = NO_READERS,
        *,
        signatures_max: int = SIGNATURES_MAX,
    ) -> None:
        self.settings = settings
        self.signed = 0  # signatures that were made
        self._readers = readers
        self._cached: LRU[Hashable, PodSignature] = LRU(signatures_max, SIGNATURES_BYTES_MAX)
        self._amounts: LRU[bytes, tuple[bytes, PodAmounts]] = LRU(
            signatures_max, SIGNATURES_BYTES_MAX
        )
        # The inputs of the last signature: the same pod often follows at once, with its node.
        self._last_inputs: tuple[object, ...] = ()
        self._last_signature: PodSignature | None = None

    def of(self, pod: Pod, *, spread_selector: Selector = EVERYTHING) -> PodSignature:
        """Return the signature of a pod without a node."""
        return self._signature(pod, pod.spec.node_name, spread_selector)

    def pod_info(self, pod: Pod) -> PodInfo:
        """Return a pod that is on a node, whichever it is."""
        started = pod.status.start_time
        is_terminating = pod.metadata.deletion_timestamp is not None
        owner = controller_of(pod.metadata)
        return PodInfo(
            key=pod_key(pod),
            signature=self._signature(pod, "", EVERYTHING),
            is_terminating=is_terminating,
            name=pod.metadata.name,
            priority=pod.spec.priority or 0,
            started=None if started is None else started.instant,
            group=group_name(pod),
            is_preempted=is_terminating and _is_preempted(pod),
            controller=("", "") if owner is None else (owner.kind, owner.uid),
        )

    def _signature(self, pod: Pod, node_name: str, spread_selector: Selector) -> PodSignature:
        inputs = (
            node_name,
            spread_selector,
            *_parts(pod.metadata),
            *_parts_of_spec(pod.spec),
            # The status of a new pod differs in the names of its claims alone.
            *[each or None for each in _parts_of_status(pod.status)],
        )
        last = self._last_signature
        if last is None or not all(map(is_, inputs, self._last_inputs)):
            last = self._last_signature = self._find(pod, node_name, spread_selector)
            self._last_inputs = inputs
        return last

    def _find(self, pod: Pod, node_name: str, spread_selector: Selector) -> PodSignature:
        counted, amounts = self._counted(pod)
        rest = _encoder.encode(_essence(pod, node_name))
        key: tuple[Hashable, ...] = (counted, rest, spread_selector)
        own: dict[str, Any] = {}
        if self._readers:
            own = {plugin: read(pod) for plugin, read in self._readers.items()}
            key = (*key, *own.values())
        signature = self._cached.get(key)
        if signature is not None:
            return signature
        if node_name != pod.spec.node_name:
            spec = msgspec.structs.replace(pod.spec, node_name=node_name)
            pod = msgspec.structs.replace(pod, spec=spec)
        signature = sign(
            pod, self.settings, amounts=amounts, spread_selector=spread_selector, by_plugin=own
        )
        self.signed += 1
        size = len(counted) + len(rest)
        signature = msgspec.structs.replace(signature, text_bytes=size)
        self._cached.put(key, signature, size)
        return signature

    def _counted(self, pod: Pod) -> tuple[bytes, PodAmounts]:
        """Return what amounts are read from, the same object for all alike, and these."""
        content = _encoder.encode(_essence_of_amounts(pod))
        found = self._amounts.get(content)
        if found is None:
            found = content, read_amounts(pod, self.settings)
            self._amounts.put(content, found, len(content))
        return found


def _is_preempted(pod: Pod) -> bool:
    return any(
        (each.type, each.status, each.reason) == (DISRUPTION_TARGET, "True", PREEMPTED)
        for each in pod.status.conditions
    )


# --- inputs of a signature ------------------------------------------------------------------------

# All that `_essence` reads.
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
_parts_of_status = attrgetter(
    "allocated_resources",
    "resources",
    "node_allocatable_resource_claim_statuses",
    "init_container_statuses",
    "container_statuses",
    "conditions",
)


def _essence(pod: Pod, node_name: str) -> Any:
    """Return all fields that `sign` reads besides those of `_essence_of_amounts`."""
    spec = pod.spec
    return (
        node_name,
        pod.metadata.namespace,
        pod.metadata.labels,
        [volume for volume in spec.volumes if _matters(volume)],
        (spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints),
        (spec.runtime_class_name, spec.scheduling_gates, spec.host_network, spec.host_users),
    )


def _essence_of_amounts(pod: Pod) -> Any:
    """Return all fields that `read_amounts` reads, and others that pods of a template share."""
    spec, status = pod.spec, pod.status
    return (
        [_of_container(container) for container in spec.init_containers],
        [_of_container(container) for container in spec.containers],
        (spec.overhead, spec.resources, spec.scheduler_name),
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


_encoder = msgspec.json.Encoder(enc_hook=str, order="deterministic")  # of quantities
