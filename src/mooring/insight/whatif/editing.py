"""Changes, written into a snapshot: what somebody with kubectl would have done.

Nothing follows from them yet: pods that have to leave are only told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from mooring.api.core import Node, Pod
from mooring.api.core.placement import Taint
from mooring.api.resource.v1 import ResourceSlice
from mooring.controllers.podstates import is_active
from mooring.insight.concerns import Concern, full_name
from mooring.insight.snapshot.overlay import overlay
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif.changes import (
    AddObjects,
    AddTaintRule,
    Change,
    CordonNode,
    DeleteClaims,
    DeletePods,
    DrainNode,
    RemoveNodes,
    RemoveTaintRule,
    ReplaceSlices,
    TaintNode,
    UnknownNameError,
)
from mooring.insight.whatif.departures import Order, is_tied_to_node
from mooring.validation.context import Context


class Edited:
    """A snapshot with changes in it, and the pods that are told to leave."""

    def __init__(self, snapshot: Snapshot, context: Context) -> None:
        self.snapshot = snapshot
        self.orders: dict[str, Order] = {}  # by the full name of the pod
        self.deleted_claims: set[str] = set()
        self.concerns: list[Concern] = []
        self._now = context.now

    def make(self, change: Change) -> None:
        """Write a change, or raise UnknownNameError."""
        match change:
            case AddObjects(objects):
                self._add(objects)
            case RemoveNodes(names):
                for name in names:
                    self._remove_node(change, name)
            case CordonNode(name):
                self._edit_node(change, name, _cordoned)
            case DrainNode(name):
                self._drain(change, name)
            case TaintNode(name, taint):
                new = replace(taint, time_added=taint.time_added or self._now.truncated())
                self._edit_node(change, name, lambda node: _tainted(node, new))
            case DeletePods(names):
                for name in names:
                    self._check(change, "pod", name, self.snapshot.pods)
                    self.orders[name] = Order("it is deleted", is_asked_for=True)
            case DeleteClaims(names):
                for name in names:
                    self._check(change, "claim", name, self.snapshot.claims)
                    self.deleted_claims.add(name)
            case ReplaceSlices(drivers, slices):
                self._replace_slices(drivers, slices)
            case AddTaintRule(rule):
                self._add(Snapshot(taint_rules=(rule,)))
            case RemoveTaintRule(name):
                self._check(change, "taint rule", name, self.snapshot.taint_rules)
                rules = (r for r in self.snapshot.taint_rules if r.metadata.name != name)
                self.snapshot = replace(self.snapshot, taint_rules=tuple(rules))

    def _add(self, objects: Snapshot) -> None:
        added, concerns = overlay(self.snapshot, objects)
        self.snapshot = self.snapshot.with_objects(added.objects())
        self.concerns += concerns

    def _replace_slices(self, drivers: tuple[str, ...], slices: tuple[ResourceSlice, ...]) -> None:
        known = {each.spec.driver for each in self.snapshot.slices}
        for driver in drivers:
            if driver not in known:
                fact = f"no slice of {driver} is there so far"
                self.concerns.append(Concern("new-driver", fact, "nothing is replaced"))
        kept = (each for each in self.snapshot.slices if each.spec.driver not in drivers)
        self.snapshot = replace(self.snapshot, slices=(*kept, *slices))

    def _check(self, change: Change, noun: str, name: str, known: Iterable[Any]) -> None:
        names = set(map(full_name, known))
        if name not in names:
            raise UnknownNameError(change, noun, name, names)

    # --- nodes ------------------------------------------------------------------------------

    def _edit_node(self, change: Change, name: str, edit: Callable[[Node], Node]) -> None:
        self._check(change, "node", name, self.snapshot.nodes)
        nodes = (edit(n) if n.metadata.name == name else n for n in self.snapshot.nodes)
        self.snapshot = replace(self.snapshot, nodes=tuple(nodes))

    def _remove_node(self, change: Change, name: str) -> None:
        self._check(change, "node", name, self.snapshot.nodes)
        nodes = tuple(n for n in self.snapshot.nodes if n.metadata.name != name)
        slices = tuple(s for s in self.snapshot.slices if s.spec.node_name != name)
        self.snapshot = replace(self.snapshot, nodes=nodes, slices=slices)
        for pod in self._pods_on(name):
            self.orders.setdefault(full_name(pod), Order(f"{name} is removed"))

    def _drain(self, change: Change, name: str) -> None:
        self._edit_node(change, name, _cordoned)
        for pod in self._pods_on(name):
            if not is_tied_to_node(pod):
                self.orders.setdefault(full_name(pod), Order(f"{name} is drained"))

    def _pods_on(self, node: str) -> Iterable[Pod]:
        return [p for p in self.snapshot.pods if p.spec.node_name == node and is_active(p)]


def _cordoned(node: Node) -> Node:
    # The taint is what a cluster adds by itself; daemons tolerate it.
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    return _tainted(replace(node, spec=replace(node.spec, unschedulable=True)), taint)


def _tainted(node: Node, taint: Taint) -> Node:
    others = (
        each for each in node.spec.taints if (each.key, each.effect) != (taint.key, taint.effect)
    )
    return replace(node, spec=replace(node.spec, taints=(*others, taint)))
