"""Constraints on how evenly pods are spread over the domains of a topology.

# domain: the nodes with one value of the topology's label
# hard: pods that would break it are not scheduled; soft: other nodes are merely better
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from moorage.api.apps import Deployment, ReplicaSet, StatefulSet
from moorage.api.core import ReplicationController
from moorage.api.core.placement import TopologySpreadConstraint
from moorage.api.core.pod import Pod
from moorage.api.core.service import Service
from moorage.api.labels import EVERYTHING, NOTHING, Selector, SelectorFault, exactly, read_selector
from moorage.api.meta import LabelSelector
from moorage.claims.pod_claims import controller_of

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"


class SpreadConstraint(Struct, frozen=True, gc=False):
    """One constraint, read."""

    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True  # only nodes that the pod's node affinity admits make domains
    honors_taints: bool = False  # only nodes whose taints the pod tolerates do
    counts_itself: bool = False  # whether the pod is one of those that it spreads


class SpreadConstraints(Struct, frozen=True, gc=False):
    """All constraints of one pod."""

    hard: tuple[SpreadConstraint, ...] = ()
    soft: tuple[SpreadConstraint, ...] = ()
    needs_all_keys: bool = True  # nodes without some soft constraint's label do not count


NO_CONSTRAINTS = SpreadConstraints()


class DefaultSpread(Struct, frozen=True):
    """The constraints of pods that have none: they select what services and owners select."""

    constraints: tuple[TopologySpreadConstraint, ...]
    needs_all_keys: bool = True  # as of constraints that pods have themselves


SYSTEM_SPREAD = DefaultSpread(
    (
        TopologySpreadConstraint(
            max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY
        ),
        TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
    ),
    needs_all_keys=False,
)


def read_spread_constraints(
    pod: Pod, selector: Selector, default: DefaultSpread = SYSTEM_SPREAD
) -> SpreadConstraints | SelectorFault:
    """Return the constraints of a pod, or the first error of a selector.

    A pod without any gets the default ones for what `selector` selects, if that is something.
    """
    listed = pod.spec.topology_spread_constraints
    if not listed:
        return _default_spreading(pod, selector, default)
    hard: list[SpreadConstraint] = []
    soft: list[SpreadConstraint] = []
    for wanted, found in ((DO_NOT_SCHEDULE, hard), (SCHEDULE_ANYWAY, soft)):
        for constraint in listed:
            if constraint.when_unsatisfiable == wanted:
                one = _read_constraint(constraint, pod.metadata.labels)
                if isinstance(one, SelectorFault):
                    return one
                found.append(one)
    return SpreadConstraints(hard=tuple(hard), soft=tuple(soft))


def default_selector(
    labels: Mapping[str, str],
    *,
    services: Iterable[Mapping[str, str]] = (),
    owner: LabelSelector | None = None,
) -> Selector:
    """Return the default spread selector of a pod: what its services and its owner select.

    `services` are the selectors of the services in its namespace, `owner` is the selector of the
    replica set, stateful set or replication controller that created it.
    """
    merged: dict[str, str] = {}
    for selector in services:
        if selector and exactly(selector).matches(labels):
            merged |= selector
    chosen = exactly(merged)
    owned = read_selector(owner)
    if isinstance(owned, SelectorFault) or owned == NOTHING:
        return chosen
    return chosen.and_selector(owned)


SelectorOwner = Service | ReplicationController | ReplicaSet | StatefulSet | Deployment
SELECTOR_OWNERS = (
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
)  # those of a live cluster


class DefaultSelectors:
    """Finds default spread selectors of a cluster's pods, as Kubernetes' DefaultSelector.

    Deployments are for plans, in which they own their pods: there are no replica sets in between.
    """

    def __init__(self) -> None:
        self._services: dict[str, dict[str, dict[str, str]]] = {}  # selectors by namespace, name
        self._owners: dict[tuple[str, str, str, str], LabelSelector | None] = {}

    def put(self, value: SelectorOwner) -> None:
        """Take in a service or controller, or its newer version."""
        if isinstance(value, Service):
            services = self._services.setdefault(value.metadata.namespace, {})
            services[value.metadata.name] = value.spec.selector
        elif isinstance(value, ReplicationController):
            selector = LabelSelector(match_labels=value.spec.selector)
            self._owners[_owner_key(value)] = selector
        else:
            self._owners[_owner_key(value)] = value.spec.selector

    def remove(self, value: SelectorOwner) -> None:
        """Take in that a service or controller is gone."""
        if isinstance(value, Service):
            services = self._services.get(value.metadata.namespace, {})
            services.pop(value.metadata.name, None)
            if not services:
                self._services.pop(value.metadata.namespace, None)
        else:
            self._owners.pop(_owner_key(value), None)

    def selector_of(self, pod: Pod) -> Selector:
        """Return the default spread selector of a pod."""
        namespace = pod.metadata.namespace
        services = self._services.get(namespace)
        owner = controller_of(pod.metadata)
        selector = None
        if owner is not None:
            selector = self._owners.get((owner.api_version, owner.kind, namespace, owner.name))
        if not services and selector is None:
            return EVERYTHING
        labels = pod.metadata.labels
        return default_selector(labels, services=(services or {}).values(), owner=selector)


def _owner_key(value: SelectorOwner) -> tuple[str, str, str, str]:
    return value.api_version, value.kind, value.metadata.namespace, value.metadata.name


def _default_spreading(pod: Pod, selector: Selector, default: DefaultSpread) -> SpreadConstraints:
    if selector.is_empty or not default.constraints:
        return NO_CONSTRAINTS
    labels = pod.metadata.labels
    found: dict[str, list[SpreadConstraint]] = {DO_NOT_SCHEDULE: [], SCHEDULE_ANYWAY: []}
    for each in default.constraints:
        found[each.when_unsatisfiable].append(_constraint(each, selector, labels))
    hard, soft = map(tuple, found.values())
    return SpreadConstraints(hard=hard, soft=soft, needs_all_keys=default.needs_all_keys)


def _read_constraint(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str]
) -> SpreadConstraint | SelectorFault:
    selector = read_selector(constraint.label_selector)
    if isinstance(selector, SelectorFault):
        return selector
    keys = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    if keys and selector != NOTHING:
        selector = selector.and_labels(keys)
    return _constraint(constraint, selector, labels)


def _constraint(
    constraint: TopologySpreadConstraint, selector: Selector, labels: Mapping[str, str]
) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, HONOR),
        honors_taints=constraint.node_taints_policy == HONOR,
        counts_itself=selector.matches(labels),
    )
