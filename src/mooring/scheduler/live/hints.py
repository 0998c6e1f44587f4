"""What can help a pod that waits, as topics: a pod waits for some, and what happens fires some.

A pod gets a node after a change only if some node that refused it no longer does, and so only if
the rule that refused first there changed its mind. So the rules that refused first, over all
nodes, tell which changes can help. A topic in common is enough; no pod is asked.

    # own: topics of the pod itself: its object, its claims, its group
    # shared: topics of the rules that refused; the same for all pods of a kind
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import ResourceClaim
from mooring.claims.owners import controller_of, group_name
from mooring.claims.references import claim_names
from mooring.scheduler.claimcheck import CANNOT_ALLOCATE, NOT_AVAILABLE
from mooring.scheduler.claimneeds import PLUGIN as DYNAMIC_RESOURCES
from mooring.scheduler.cycle import Pending
from mooring.scheduler.filtering import Survey
from mooring.scheduler.filters import (
    interpodaffinity,
    nodeports,
    noderesources,
    podtopologyspread,
)
from mooring.scheduler.obstacles import GANG_SCHEDULING
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shapes import key_of

Topic = tuple[str, ...]

NODES: Topic = ("nodes",)  # a node came, went, or is another
DEVICES: Topic = ("devices",)  # devices came, were given back, or are others
TAKEN: Topic = ("taken",)  # devices were taken: others may be picked now, that fit better
CLASSES: Topic = ("classes",)  # a class came or is another
ROOM: Topic = ("room",)  # a pod left a node, or holds less of it
COMPANY: Topic = ("company",)  # a pod came to a node, or has other labels

EVERYTHING = frozenset((NODES, DEVICES, TAKEN, CLASSES, ROOM, COMPANY))

WIDE = (interpodaffinity.PLUGIN, podtopologyspread.PLUGIN)
ON_NODE = (nodeports.PLUGIN, noderesources.PLUGIN, DYNAMIC_RESOURCES)
# What claims say whichever devices would be picked.
ANY_PICK = (CANNOT_ALLOCATE, NOT_AVAILABLE)
ROOMS_MAX = 16  # nodes that a pod waits for one by one


class Waits(NamedTuple):
    """What a pod waits for."""

    own: frozenset[Topic]
    shared: frozenset[Topic] = frozenset()
    is_gated: bool = False  # it was not tried at all, and need not wait before it is
    is_eager: bool = False  # it need not back off, because others make room for it


def of_pod(key: str) -> Topic:
    """Return the topic of a pod's own object, by its key."""
    return ("pod", key)


def of_claim(namespace: str, name: str) -> Topic:
    """Return the topic of a claim."""
    return ("claim", namespace, name)


def of_group(namespace: str, name: str) -> Topic:
    """Return the topic of a group."""
    return ("group", namespace, name)


def told(key: tuple[str, str]) -> Topic:
    """Return the topic of a claim that was told, whether that is news or not."""
    return ("told", *key)


def room_on(node: str) -> Topic:
    """Return the topic of room on one node."""
    return ("room", node)


def waits_of(pending: Pending) -> Waits:
    """Return what can help a pod that got no node."""
    own = frozenset(own_topics(pending.pod))
    obstacle = pending.survey.obstacle
    if obstacle is None:
        # Something may also help to displace others, even where that alone does not help.
        alone = replace(pending.survey, refusals=pending.refused_alone)
        return Waits(own, frozenset((*_of_refusals(pending.survey), *_of_refusals(alone))))
    if not pending.message:
        return Waits(own, is_gated=True)
    if obstacle.plugin == GANG_SCHEDULING:
        return Waits(own, EVERYTHING)
    if obstacle.plugin == DYNAMIC_RESOURCES:
        return Waits(own, frozenset((CLASSES,)))
    return Waits(own)


def own_topics(pod: Pod) -> Iterator[Topic]:
    """Give the topics of a pod itself."""
    namespace = pod.metadata.namespace
    yield of_pod(key_of(pod))
    for name in claim_names(pod):
        yield of_claim(namespace, name)
    if (group := group_name(pod)) is not None:
        yield of_group(namespace, group)


def fired_by_claim(claim: ResourceClaim) -> Iterator[Topic]:
    """Give the topics of whoever uses a claim, or owns it."""
    yield of_claim(claim.metadata.namespace, claim.metadata.name)
    if (owner := controller_of(claim.metadata)) is not None:
        yield of_pod(owner.uid)


def _of_refusals(survey: Survey) -> Iterator[Topic]:
    yield NODES
    plugins = {refusal.plugin for refusal in survey.refusals.values()}
    if DYNAMIC_RESOURCES in plugins:
        yield from (DEVICES, CLASSES)
        if any(map(_depends_on_picks, survey.refusals.values())):
            yield TAKEN
    if noderesources.PLUGIN in plugins:
        yield CLASSES  # one may serve an extended resource that nodes have not
    if not plugins.isdisjoint(WIDE):
        yield from (ROOM, COMPANY)
        return
    nodes = [name for name, said in survey.refusals.items() if _wants_room(said)]
    if len(nodes) > ROOMS_MAX:
        yield ROOM
    else:
        yield from map(room_on, nodes)


def _depends_on_picks(refusal: Refusal) -> bool:
    return refusal.plugin == DYNAMIC_RESOURCES and refusal not in ANY_PICK


def _wants_room(refusal: Refusal) -> bool:
    return refusal.plugin in ON_NODE and not refusal.is_unresolvable
