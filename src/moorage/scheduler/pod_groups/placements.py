"""Placements: the domains of a topology, of which a group must use one alone.

# placement: a domain: a value of the node label that the group's constraint names
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from moorage.api.meta import namespaced_name
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.node_info import node_amounts
from moorage.scheduler.pod_groups.gangs import Unit, topology_key
from moorage.scheduler.resources import is_scalar

ALL_PERCENT = 100
UNKNOWN_DOMAIN = "cannot determine domain for already scheduled pods: "


class PlacementError(Exception):
    """The nodes that a group has already belong to no domain, or to several."""


class Placement(Struct, frozen=True):
    """The nodes that a group may use."""

    name: str = ""
    nodes: Collection[str] | None = None  # None: all


def placements_of(
    cluster: Cluster, unit: Unit, nodes: Collection[str] | None = None
) -> list[Placement]:
    """Return the domains that a group can be tried in, within nodes; may raise PlacementError.

    Those of the first nodes come first. Once pods of the group have nodes, only theirs is left.
    """
    key = topology_key(unit.group)
    if key is None:
        return [Placement(nodes=nodes)]
    only = _used_domain(cluster, unit, key)
    found: dict[str, list[str]] = {}
    for name in sorted(cluster.snapshot.nodes if nodes is None else nodes):
        domain = cluster.snapshot.nodes[name].facts.labels.get(key)
        if domain is not None and only in (None, domain):
            found.setdefault(domain, []).append(name)
    return [Placement(domain, frozenset(names)) for domain, names in found.items()]


def _used_domain(cluster: Cluster, unit: Unit, key: str) -> str | None:
    used: str | None = None
    for pod, name in zip(unit.placed, unit.nodes, strict=True):
        there = f"pod {namespaced_name(pod.metadata)}"
        info = cluster.snapshot.nodes.get(name)
        if info is None:
            text = f'getting node for {there}: nodeinfo not found for node name "{name}"'
            raise PlacementError(UNKNOWN_DOMAIN + text)
        domain = info.facts.labels.get(key)
        if domain is None:
            raise PlacementError(f"{UNKNOWN_DOMAIN}no topology domain found for {there}")
        if used not in (None, domain):
            text = f"more than 1 domain found for pod group: {used}, {domain}"
            raise PlacementError(UNKNOWN_DOMAIN + text)
        used = domain
    return used


def allocated_score(
    cluster: Cluster, placement: Placement, resources: Iterable[tuple[str, int]]
) -> int:
    """Return how much of some weighted resources of a domain is in use: fuller ones are better."""
    snapshot = cluster.snapshot
    names = snapshot.nodes if placement.nodes is None else placement.nodes
    infos = [snapshot.nodes[name] for name in names]
    total = weights = 0
    for name, weight in resources:
        amounts = [node_amounts(name, info, is_non_zero=True) for info in infos]
        there, used = (sum(column) for column in zip(*amounts, strict=True))
        # An extended resource that nobody uses was not requested, and does not count.
        if there and (used or not is_scalar(name)):
            total += min(used, there) * ALL_PERCENT // there * weight
            weights += weight
    return total // weights if weights else 0
