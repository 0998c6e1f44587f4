"""The signature of a pod: everything that decides where it goes, read once for all alike.

Pods of one template have one signature: they differ in name, node and mounted tokens, none of
which decides anything. What does decide is encoded as bytes, for some µs; pods with the same bytes
share a signature (`SignatureCache`), so a thousand of them are read once.

A signature holds what depends on the pod alone: sums of requests, sets in place of lists, selectors
that were read. What depends on other pods is in the `TopologyState` of the signature. A plugin that
reads something else of a pod declares a reader; what it read is in `by_plugin`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from operator import attrgetter, is_
from typing import Any

import msgspec
from msgspec import Struct

from mooring.api.core.pod import (
    DEFAULT_SCHEDULER,
    DISRUPTION_TARGET,
    Container,
    ContainerStatus,
    Pod,
)
from mooring.api.labels import EVERYTHING, Selector, SelectorFault
from mooring.api.node_affinity import NodeNeed, read_need
from mooring.api.tolerations import Tolerations
from mooring.claims.pod_claims import group_name
from mooring.claims.pod_resources import RESIZE_PENDING
from mooring.kit.lru import LRU
from mooring.scheduler.affinity import (
    NO_TERMS,
    AffinityTerms,
    PreferredNodeTerm,
    read_affinity_terms,
    read_preferred_node_terms,
    read_required_features,
)
from mooring.scheduler.framework import PluginStatus, Unschedulable
from mooring.scheduler.pre_filter import (
    NODE_AFFINITY,
    NODE_NAME,
    named_nodes,
    scheduling_gates,
    unmodelled,
    unreadable,
)
from mooring.scheduler.resources import (
    HostPort,
    NonZeroRequests,
    ResourceAmounts,
    host_ports,
    non_zero_requests_of,
    non_zero_requests_on_node,
    requests_of,
    requests_on_node,
    scored_requests_of,
)
from mooring.scheduler.topology_spread import (
    NO_CONSTRAINTS,
    SYSTEM_SPREAD,
    DefaultSpread,
    SpreadConstraints,
    read_spread_constraints,
)

LabelsKey = tuple[tuple[str, str], ...]
# By plugin; they read nothing that `_parts_of_spec` does not name.
PodReaders = Mapping[str, Callable[[Pod], Hashable]]

SIGNATURES_MAX = 8192
PREEMPTED = "PreemptionByScheduler"  # the reason of the condition of victims
FIT = "NodeResourcesFit"
NO_READERS: PodReaders = {}


class PodReading(Struct, frozen=True):
    """How the pods of one profile are read: what the arguments of its plugins say about that."""

    scheduler_name: str = DEFAULT_SCHEDULER
    default_spread: DefaultSpread = SYSTEM_SPREAD  # of pods without constraints of their own
    required_affinity_weight: int = 1  # of required terms of placed pods in scores
    ignores_placed_preferences: bool = False  # for pods without preferences of their own
    has_gates: bool = True  # pods with scheduling gates wait
    checks_volumes: bool = True  # volumes may restrict where a pod goes
    narrowed_by: tuple[str, ...] = (NODE_NAME, NODE_AFFINITY)  # plugins that name its only nodes
    # Resources that scores count, by plugin, where these are not CPU and memory alone.
    scored_resources: tuple[tuple[str, tuple[str, ...]], ...] = ()


DEFAULT_READING = PodReading()


class ReadingSettings(Struct, frozen=True):
    """Which schedulers this is, and which features decide how it reads pods."""

    readings: tuple[PodReading, ...] = (DEFAULT_READING,)  # of each profile; at least one
    is_admitted: bool = False  # pods come from a cluster, whose admission has completed them
    runtimes: frozenset[str] = frozenset()  # runtime classes whose rules pods already have
    compares_tolerations: bool = False  # gate TaintTolerationComparisonOperators
    counts_claims: bool = True  # gate DRANodeAllocatableResources

    def reading_of(self, pod: Pod) -> PodReading:
        """Return how a pod is read; one of another scheduler as by the first profile."""
        name, first = pod.spec.scheduler_name or DEFAULT_SCHEDULER, self.readings[0]
        if name == first.scheduler_name:
            return first
        return next((each for each in self.readings if each.scheduler_name == name), first)


DEFAULT_SETTINGS = ReadingSettings()


class PodSignature(Struct, frozen=True, gc=False, eq=False):
    """Everything that decides where pods of a signature go, and how they affect others."""

    namespace: str
    labels: Mapping[str, str]
    labels_key: LabelsKey
    # What filters read.
    requests: ResourceAmounts
    non_zero_requests: NonZeroRequests
    host_ports: tuple[HostPort, ...]
    required_node_affinity: NodeNeed | None
    node_name: str
    node_names: frozenset[str] | None  # the only nodes that it can go to
    excluded: Unschedulable | None  # the status of all others
    tolerations: Tolerations
    required_features: frozenset[str]
    # What scores read.
    preferred_node_terms: tuple[PreferredNodeTerm, ...]
    prefer_no_schedule_tolerations: Tolerations
    images: tuple[str, ...]
    # Its terms about other pods.
    affinity_terms: AffinityTerms
    spread_constraints: SpreadConstraints
    # The resources it uses on its node.
    requests_on_node: ResourceAmounts
    non_zero_requests_on_node: NonZeroRequests
    # Why it cannot go anywhere, whatever the nodes are.
    pre_filter_status: PluginStatus | None
    by_plugin: Mapping[str, Any] = {}  # what plugins read themselves
    reading: PodReading = DEFAULT_READING  # of its profile
    scored_requests: Mapping[str, tuple[int, ...]] = {}  # of `reading.scored_resources`


class PodInfo(Struct, frozen=True, gc=False):
    """A pod on a node."""

    key: str
    signature: PodSignature
    is_terminating: bool = False
    name: str = ""
    priority: int = 0
    started: datetime | None = None
    group: str | None = None  # the pod group that it is scheduled with
    is_preempted: bool = False  # it is terminating because of the scheduler

    @property
    def full_name(self) -> str:
        """Its namespace and name."""
        return f"{self.signature.namespace}/{self.name}"


def _is_preempted(pod: Pod) -> bool:
    return any(
        (each.type, each.status, each.reason) == (DISRUPTION_TARGET, "True", PREEMPTED)
        for each in pod.status.conditions
    )


def pod_key(pod: Pod) -> str:
    """Return the identity of a pod: its uid, or its name before it has one."""
    metadata = pod.metadata
    return metadata.uid or f"{metadata.namespace}/{metadata.name}"


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
        self._cached: LRU[Hashable, PodSignature] = LRU(signatures_max)
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
        return PodInfo(
            key=pod_key(pod),
            signature=self._signature(pod, "", EVERYTHING),
            is_terminating=is_terminating,
            name=pod.metadata.name,
            priority=pod.spec.priority or 0,
            started=None if started is None else started.instant,
            group=group_name(pod),
            is_preempted=is_terminating and _is_preempted(pod),
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
        content = _encoder.encode(_essence(pod, node_name))
        key: tuple[Hashable, ...] = (content, spread_selector)
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
        signature = sign(pod, self.settings, spread_selector=spread_selector, by_plugin=own)
        self.signed += 1
        self._cached.put(key, signature)
        return signature


def sign(
    pod: Pod,
    settings: ReadingSettings = DEFAULT_SETTINGS,
    *,
    spread_selector: Selector = EVERYTHING,
    by_plugin: Mapping[str, Any] | None = None,
) -> PodSignature:
    """Return the signature of a pod with defaults: limits replace missing requests.

    `spread_selector` selects the pods that it is spread with by default: see `DefaultSelectors`.
    """
    spec, labels = pod.spec, pod.metadata.labels
    terms = read_affinity_terms(pod)
    reading = settings.reading_of(pod)
    constraints = read_spread_constraints(pod, spread_selector, reading.default_spread)
    preferred = read_preferred_node_terms(pod)
    tolerations = Tolerations(spec.tolerations, settings.compares_tolerations)
    named = named_nodes(pod, reading.narrowed_by)
    return PodSignature(
        namespace=pod.metadata.namespace,
        labels=labels,
        labels_key=tuple(sorted(labels.items())),
        requests=requests_of(pod),
        non_zero_requests=non_zero_requests_of(pod),
        host_ports=host_ports(pod),
        required_node_affinity=read_need(pod),
        node_name=spec.node_name,
        node_names=named.node_names,
        excluded=named.excluded,
        tolerations=tolerations,
        required_features=read_required_features(pod),
        preferred_node_terms=() if isinstance(preferred, SelectorFault) else preferred,
        prefer_no_schedule_tolerations=tolerations.soft(),
        images=_images(pod),
        affinity_terms=NO_TERMS if isinstance(terms, SelectorFault) else terms,
        spread_constraints=NO_CONSTRAINTS
        if isinstance(constraints, SelectorFault)
        else constraints,
        requests_on_node=requests_on_node(pod, with_claims=settings.counts_claims),
        non_zero_requests_on_node=non_zero_requests_on_node(
            pod, with_claims=settings.counts_claims
        ),
        pre_filter_status=not_tried(pod, settings)
        or named.conflict
        or unreadable(terms, constraints, preferred),
        by_plugin=by_plugin or {},
        reading=reading,
        scored_requests={
            plugin: scored_requests_of(pod, resources, as_fit=plugin == FIT)
            for plugin, resources in reading.scored_resources
        },
    )


def not_tried(pod: Pod, settings: ReadingSettings) -> Unschedulable | None:
    """Return why a pod is not tried at all, if so: its gates, or what nobody here can place."""
    reading = settings.reading_of(pod)
    return (scheduling_gates(pod) if reading.has_gates else None) or unmodelled(
        pod,
        scheduler_names=tuple(each.scheduler_name for each in settings.readings),
        checks_volumes=reading.checks_volumes,
        is_admitted=settings.is_admitted or pod.spec.runtime_class_name in settings.runtimes,
    )


def _images(pod: Pod) -> tuple[str, ...]:
    """Return the images of containers and volumes, each with its tag."""
    spec = pod.spec
    named = [container.image for container in (*spec.init_containers, *spec.containers)]
    for volume in spec.volumes:
        image = volume.get("image") if isinstance(volume, dict) else None
        if isinstance(image, dict):
            named.append(str(image.get("reference") or ""))
    return tuple(map(_with_tag, named))


def _with_tag(image: str) -> str:
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image


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
    """Return all fields that `sign` reads, and nothing else."""
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


_encoder = msgspec.json.Encoder(enc_hook=str, order="deterministic")  # of quantities
