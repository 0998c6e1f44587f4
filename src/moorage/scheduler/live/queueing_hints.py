"""Queueing hints: which cluster events can help a pod that waits.

A pod gets a node after an event only if some node that rejected it no longer does, and so only if
the plugin that rejected it first there changed its mind. So the plugins that rejected first, over
all nodes, decide which events can help; each filter declares what its plugin reads. One event in
common is enough to try the pod again.

    # own: events of the pod itself: its object, its claims, its group
    # shared: events of the plugins that rejected; the same for all pods of a kind
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim
from moorage.api.scheduling import PodGroup
from moorage.claims.pod_claims import claim_names, controller_of, group_name
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import DYNAMIC_RESOURCES, GANG_SCHEDULING
from moorage.scheduler.group_forest import AnyGroup, GroupForest, key_of
from moorage.scheduler.plugins import Reads
from moorage.scheduler.plugins.dynamic_resources import CANNOT_ALLOCATE, NOT_AVAILABLE
from moorage.scheduler.plugins.registry import reads_of
from moorage.scheduler.pod_signature import pod_key
from moorage.scheduler.scheduling_cycle import Pending
from moorage.scheduler.volume_binding import PLUGIN as VOLUME_BINDING

ClusterEvent = tuple[str, ...]

NODE_CHANGED: ClusterEvent = ("nodes",)  # a node came, went, or changed
DEVICES_CHANGED: ClusterEvent = ("devices",)  # devices came, were freed, or changed
DEVICES_TAKEN: ClusterEvent = ("taken",)  # devices were allocated: others may be chosen now
CLASS_CHANGED: ClusterEvent = ("classes",)  # a class came or changed
VOLUME_CHANGED: ClusterEvent = ("volumes",)  # a volume, a claim of one or a class changed
POD_LEFT: ClusterEvent = ("pod left",)  # a pod left a node, or requests less
POD_CAME: ClusterEvent = ("pod came",)  # a pod came to a node, or has other labels

EVERYTHING = frozenset(
    (NODE_CHANGED, DEVICES_CHANGED, DEVICES_TAKEN, CLASS_CHANGED, POD_LEFT, POD_CAME)
)

# The answers of claims whichever devices would be chosen.
ANY_CHOICE = (CANNOT_ALLOCATE, NOT_AVAILABLE)
NODES_MAX = 16  # nodes of which a pod waits for each one


class QueueingHints(NamedTuple):
    """The events that can help a pod."""

    own: frozenset[ClusterEvent]
    shared: frozenset[ClusterEvent] = frozenset()
    is_gated: bool = False  # it was not tried, and need not back off before it is
    is_eager: bool = False  # it need not back off, because pods are preempted for it
    is_timed: bool = False  # it is tried at the times at which Kubernetes tries it
    is_parked: bool = False  # Kubernetes does not try it either until one of the events


def of_pod(key: str) -> ClusterEvent:
    """Return the event of a pod's own object, by its key."""
    return ("pod", key)


def of_claim(namespace: str, name: str) -> ClusterEvent:
    """Return the event of a claim."""
    return ("claim", namespace, name)


def of_group(namespace: str, name: str) -> ClusterEvent:
    """Return the event of a pod group."""
    return ("group", namespace, name)


def of_tree(forest: GroupForest, group: AnyGroup) -> Iterator[ClusterEvent]:
    """Yield the events of all pod groups that are tried together with a group."""
    namespace, name = group.metadata.namespace, group.metadata.name
    if isinstance(group, PodGroup):
        yield of_group(namespace, name)
    for leaf in forest.leaves(forest.root_of(key_of(group))):
        yield of_group(namespace, leaf.metadata.name)


def claim_watched(key: tuple[str, str]) -> ClusterEvent:
    """Return the event of a claim in the watch, whether that is news or not."""
    return ("claim-watched", *key)


def pod_left(node: str) -> ClusterEvent:
    """Return the event of a pod that left one node."""
    return ("pod-left", node)


def departures(events: Iterable[ClusterEvent]) -> frozenset[ClusterEvent]:
    """Return those of some events that say that a pod left a node."""
    return frozenset(each for each in events if each == POD_LEFT or each[0] == pod_left("")[0])


def hints_for(pending: Pending) -> QueueingHints:
    """Return the events that can help a pod that got no node."""
    own = frozenset(own_events(pending.pod))
    status = pending.diagnosis.pre_filter_status
    if status is None:
        # Preemption may become possible, even where the event alone does not help.
        preempted = replace(pending.diagnosis, node_to_status=pending.without_victims)
        return QueueingHints(own, frozenset((*_hints(pending.diagnosis), *_hints(preempted))))
    if not pending.message:
        return gated_hints(pending.pod)
    if status.plugin == GANG_SCHEDULING:
        return QueueingHints(own, EVERYTHING)
    if status.plugin == DYNAMIC_RESOURCES:
        return QueueingHints(own, frozenset((CLASS_CHANGED,)))
    if status.plugin == VOLUME_BINDING:
        return QueueingHints(own, frozenset((VOLUME_CHANGED,)))
    return QueueingHints(own)


def gated_hints(pod: Pod) -> QueueingHints:
    """Return the events that can help a pod that is not tried yet: its own."""
    return QueueingHints(frozenset(own_events(pod)), is_gated=True)


def combined_hints(hints: list[QueueingHints]) -> QueueingHints:
    """Return the events that can help pods that are tried together."""
    return QueueingHints(
        frozenset().union(*(each.own for each in hints)),
        frozenset().union(*(each.shared for each in hints)),
        all(each.is_gated for each in hints),
    )


def own_events(pod: Pod) -> Iterator[ClusterEvent]:
    """Yield the events of a pod itself."""
    namespace = pod.metadata.namespace
    yield of_pod(pod_key(pod))
    for name in claim_names(pod):
        yield of_claim(namespace, name)
    if (group := group_name(pod)) is not None:
        yield of_group(namespace, group)


def events_of_claim(claim: ResourceClaim) -> Iterator[ClusterEvent]:
    """Yield the events for whoever uses a claim, or owns it without naming it.

    A claim from a template is used by the name in the pod's status, and helps nobody before.
    """
    yield of_claim(claim.metadata.namespace, claim.metadata.name)
    if POD_CLAIM_ANNOTATION in claim.metadata.annotations:
        return
    if (owner := controller_of(claim.metadata)) is not None:
        yield of_pod(owner.uid)


def is_pod_news(pod: Pod, old: Pod) -> bool:
    """Return whether the outcome for an unscheduled pod may differ from before."""
    return (
        pod.spec != old.spec
        or pod.metadata.labels != old.metadata.labels
        or pod.status.resource_claim_statuses != old.status.resource_claim_statuses
    )


def is_group_news(group: AnyGroup, old: AnyGroup | None) -> bool:
    """Return whether more of a group changed than its conditions, which the scheduler writes."""
    return (
        old is None
        or group.metadata.uid != old.metadata.uid
        or group.spec != old.spec
        or replace(group.status, conditions=()) != replace(old.status, conditions=())
    )


def _hints(diagnosis: FitDiagnosis) -> Iterator[ClusterEvent]:
    statuses = diagnosis.node_to_status
    reads = {plugin: reads_of(plugin) for plugin in {each.plugin for each in statuses.values()}}
    all_reads = Reads(0)
    for each in reads.values():
        all_reads |= each
    yield NODE_CHANGED
    if Reads.CLASSES in all_reads:
        yield CLASS_CHANGED
    if Reads.DEVICES in all_reads:
        yield DEVICES_CHANGED
        of_devices = {plugin for plugin, each in reads.items() if Reads.DEVICES in each}
        if any(s.plugin in of_devices and s not in ANY_CHOICE for s in statuses.values()):
            yield DEVICES_TAKEN
    if Reads.OTHER_PODS in all_reads:
        yield from (POD_LEFT, POD_CAME)
        return
    of_pods = {plugin for plugin, each in reads.items() if Reads.PODS in each}
    nodes = [n for n, s in statuses.items() if s.plugin in of_pods and not s.is_unresolvable]
    if len(nodes) > NODES_MAX:
        yield POD_LEFT
    else:
        yield from map(pod_left, nodes)
