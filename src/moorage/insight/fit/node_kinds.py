"""Kinds of nodes: nodes of a kind take the same number of replicas, so one of them is filled.

Nodes differ in their names, and devices in their uuids, but what decides is mostly the same: the
resources that are left, and at which positions there are devices that a request could get, free
ones, and ones with equal attributes. That holds only where no filter reads the pods of other nodes
and no device is shared between nodes; whoever asks has made sure of both. A node about which
anything else could matter is a kind by itself.

    # kind: all that decides how many replicas a node takes, and what is said of it when it is full
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from moorage.allocator.problem import Problem, Slot
from moorage.allocator.rules.constraints import AttributeTable, Constraint
from moorage.insight.explain.funnel import selected_devices
from moorage.insight.explain.nodes import NodeProbe
from moorage.scheduler.node_info import NodeInfo, node_amounts
from moorage.scheduler.plugins.registry import active_filters, run_filters
from moorage.scheduler.scheduling_cycle import Attempt

_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


class NodeKinds:
    """Tells the kinds of nodes for one replica, before any replica is placed."""

    def __init__(self, ready: Attempt) -> None:
        self._ready = ready
        self._cluster = ready.cluster
        self._state = ready.cluster.snapshot.topology_state(ready.signature)
        profile = self._cluster.profile_of(ready.signature)
        self._filters = active_filters(profile, ready.signature, self._state)
        self._resources = (*_RESOURCES, *ready.signature.requests.others)
        self._probe = NodeProbe(ready)

    @property
    def are_known(self) -> bool:
        """Whether nodes have kinds: only resources and devices decide whether one more fits."""
        claims, inventory = self._ready.claims, self._cluster.inventory
        signature = self._ready.signature
        if signature.host_ports or signature.node_names is not None:
            return False
        if not self._filters.has_fast_path:
            return False
        if claims is None:
            return True
        needs = claims.needs
        return needs.special is None and not needs.allocated and not inventory.has_node_resources

    def of(self, name: str) -> Hashable:
        """Return the kind of a node."""
        info = self._cluster.snapshot.nodes[name]
        filters = (*self._filters.fixed, *self._filters.after_claims)
        if run_filters(filters, self._ready.signature, info, self._state) is not None:
            return name  # What is said of it may be about its labels.
        if self._ready.claims is None:
            return self._left(info)
        problem = self._probe.problem(name)
        devices = None if problem is None else _devices(problem)
        return name if devices is None else (self._left(info), devices)

    def _left(self, info: NodeInfo) -> Hashable:
        """Return how much of the resources and pods a node may have, and has."""
        amounts = [node_amounts(name, info, is_non_zero=False) for name in self._resources]
        names = frozenset(info.facts.allocatable.others)  # of which a message may suggest one
        return info.facts.pods_max, len(info.pods), names, tuple(amounts)


def nodes_by_kind(ready: Attempt) -> list[list[str]] | None:
    """Return the nodes in groups of one kind each; None if there are none."""
    kinds = NodeKinds(ready)
    if not kinds.are_known or not ready.cluster.snapshot.nodes:
        return None
    found: dict[Hashable, list[str]] = {}
    for name in sorted(ready.cluster.snapshot.nodes):
        found.setdefault(kinds.of(name), []).append(name)
    return [*found.values()]


def _devices(problem: Problem) -> Hashable | None:
    """Return all that decides about a problem's devices; None if it may be more than that."""
    view, allocated = problem.view, problem.allocated
    if problem.plan.checks or not problem.has_plain_rules or allocated.shared or view.shareable:
        return None
    if view.by_device or view.is_invalid or view.has_odd_selectors:
        return None
    slots = [slot for stage in problem.stages for slot in stage]
    if any(slot.is_lazy or slot.is_reached or slot.is_risky for slot in slots):
        return None
    if any(slot.candidates != selected_devices(problem, slot) for slot in slots):
        return None  # What hinders the others has a name.
    return len(view.devices), allocated.whole, tuple(key for each in slots for key in _slot(each))


def _slot(slot: Slot) -> Iterator[Hashable]:
    yield slot.count
    yield slot.candidates
    yield slot.listed
    for rule in slot.rules:
        if isinstance(rule, Constraint):
            yield _table(rule.tables[slot.request])


def _table(table: AttributeTable) -> Hashable:
    """Return the values that a constraint compares."""
    return table.known, table.only_first, tuple(table.elements.items())
