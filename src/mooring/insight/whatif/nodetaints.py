"""Pods that leave because their node has a taint with the effect NoExecute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from msgspec import Struct

from mooring.api.core import Node, Pod
from mooring.api.core.placement import NO_EXECUTE, Taint
from mooring.api.timestamp import Timestamp
from mooring.api.tolerations import Tolerations
from mooring.claims.evictions import LATEST


class NodeEviction(Struct, frozen=True):
    """A pod that leaves, and the taint of its node that makes it."""

    pod: Pod
    when: Timestamp
    taint: Taint


def find_node_evictions(
    pods: Iterable[Pod], nodes: Mapping[str, Node], *, now: Timestamp
) -> tuple[NodeEviction, ...]:
    """Return the pods that do not tolerate what their nodes have."""
    found = []
    for pod in pods:
        node = nodes.get(pod.spec.node_name)
        taints = () if node is None else node.spec.taints
        evicting = [taint for taint in taints if taint.effect == NO_EXECUTE]
        if evicting and (eviction := _eviction(pod, evicting, now)) is not None:
            found.append(eviction)
    return tuple(found)


def _eviction(pod: Pod, taints: list[Taint], now: Timestamp) -> NodeEviction | None:
    """Return when a pod leaves: at once if one taint is not tolerated, else after the shortest.

    Of several tolerations that cover a taint the first counts.
    """
    earliest: NodeEviction | None = None
    for taint in taints:
        covering = (t for t in pod.spec.tolerations if Tolerations((t,)).tolerate(taint))
        first = next(covering, None)
        if first is None:
            return NodeEviction(pod, now, taint)
        if first.toleration_seconds is not None:
            when = _later(taint.time_added or now, max(first.toleration_seconds, 0))
            if earliest is None or when < earliest.when:
                earliest = NodeEviction(pod, when, taint)
    return earliest


def _later(then: Timestamp, seconds: int) -> Timestamp:
    try:
        return Timestamp(then.instant + timedelta(seconds=seconds))
    except OverflowError:
        return LATEST
