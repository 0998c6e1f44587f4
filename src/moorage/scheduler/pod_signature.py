"""The signature of a pod: everything that decides where it goes, read once for all alike.

Pods of one template have one signature: they differ in name, node and mounted tokens, none of
which decides anything. `SignatureCache` reads a thousand of them once.

A signature holds what depends on the pod alone: sums of requests, sets in place of lists, selectors
that were read. What depends on other pods is in the `TopologyState` of the signature. A plugin that
reads something else of a pod declares a reader; what it read is in `by_plugin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct

from moorage.api.core.pod import (
    DEFAULT_SCHEDULER,
    Pod,
)
from moorage.api.labels import EVERYTHING, Selector, SelectorFault
from moorage.api.node_affinity import NodeNeed, read_need
from moorage.api.tolerations import Tolerations
from moorage.scheduler.affinity import (
    NO_TERMS,
    AffinityTerms,
    PreferredNodeTerm,
    read_affinity_terms,
    read_preferred_node_terms,
    read_required_features,
)
from moorage.scheduler.framework import PluginStatus, Unschedulable
from moorage.scheduler.pre_filter import (
    NODE_AFFINITY,
    NODE_NAME,
    named_nodes,
    scheduling_gates,
    unmodelled,
    unreadable,
)
from moorage.scheduler.resources import (
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
from moorage.scheduler.topology_spread import (
    NO_CONSTRAINTS,
    SYSTEM_SPREAD,
    DefaultSpread,
    SpreadConstraints,
    read_spread_constraints,
)

LabelsKey = tuple[tuple[str, str], ...]

FIT = "NodeResourcesFit"


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
    text_bytes: int = 0  # of the fields that it is made of; caches are bounded by them


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
    controller: tuple[str, str] = ("", "")  # kind and uid of the object that created it

    @property
    def full_name(self) -> str:
        """Its namespace and name."""
        return f"{self.signature.namespace}/{self.name}"


def pod_key(pod: Pod) -> str:
    """Return the identity of a pod: its uid, or its name before it has one."""
    metadata = pod.metadata
    return metadata.uid or f"{metadata.namespace}/{metadata.name}"


class PodAmounts(NamedTuple):
    """The resources that a pod requests, in all the ways in which they are counted."""

    requests: ResourceAmounts
    non_zero_requests: NonZeroRequests
    requests_on_node: ResourceAmounts
    non_zero_requests_on_node: NonZeroRequests
    scored_requests: Mapping[str, tuple[int, ...]]


def read_amounts(pod: Pod, settings: ReadingSettings) -> PodAmounts:
    """Return the amounts that a pod requests; limits replace missing requests."""
    with_claims = settings.counts_claims
    return PodAmounts(
        requests=requests_of(pod),
        non_zero_requests=non_zero_requests_of(pod),
        requests_on_node=requests_on_node(pod, with_claims=with_claims),
        non_zero_requests_on_node=non_zero_requests_on_node(pod, with_claims=with_claims),
        scored_requests={
            plugin: scored_requests_of(pod, resources, as_fit=plugin == FIT)
            for plugin, resources in settings.reading_of(pod).scored_resources
        },
    )


def sign(
    pod: Pod,
    settings: ReadingSettings = DEFAULT_SETTINGS,
    *,
    amounts: PodAmounts | None = None,
    spread_selector: Selector = EVERYTHING,
    by_plugin: Mapping[str, Any] | None = None,
) -> PodSignature:
    """Return the signature of a pod with defaults; its amounts may be known already.

    `spread_selector` selects the pods that it is spread with by default: see `DefaultSelectors`.
    """
    amounts = amounts or read_amounts(pod, settings)
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
        requests=amounts.requests,
        non_zero_requests=amounts.non_zero_requests,
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
        requests_on_node=amounts.requests_on_node,
        non_zero_requests_on_node=amounts.non_zero_requests_on_node,
        pre_filter_status=not_tried(pod, settings)
        or named.conflict
        or unreadable(terms, constraints, preferred),
        by_plugin=by_plugin or {},
        reading=reading,
        scored_requests=amounts.scored_requests,
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
