"""Limits: why nodes take no more replicas, and which devices stay free for that reason.

    refused replica ─ fullness of each node ─┬─ limits: nodes that reject it alike, together
                                             └─ leftovers: free devices, and what keeps them apart

A node without enough devices names the request that runs out first, and the question of its funnel
that leaves too few devices. Requests are examined one by one, before anything is picked. Where each
by itself would find enough, they get in each other's way; then the first is named that does not
fit beside those before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from moorage.allocator.pools import bits
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.requests import SubRequest
from moorage.allocator.rules.constraints import Constraint, DistinctAttribute
from moorage.allocator.trace import stuck_at
from moorage.cel.device import DeviceCompiler
from moorage.insight.explain.device_rejections import (
    constraints_of,
    has_types,
    rejection_of,
    value_text,
)
from moorage.insight.explain.funnel import (
    FITTING,
    FREE,
    SELECTED,
    STAGES,
    TOGETHER,
    TOLERATED,
    devices_left,
)
from moorage.insight.explain.nodes import NodeProbe
from moorage.insight.explain.phrases import rejection_text
from moorage.insight.fit.device_supply import DeviceSupply, RequestNames, names_of
from moorage.insight.fit.replicas import UnplacedReplica
from moorage.insight.messages import counted, shortened
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.plugins.dynamic_resources import CANNOT_ALLOCATE
from moorage.scheduler.scheduling_cycle import Attempt

VALUES_SHOWN_MAX = 6
MATCHING, DISTINCT = "one", "a distinct"  # the constraint on the values


class Limit(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Why some nodes take no more."""

    nodes: tuple[str, ...]
    replicas: int  # that these nodes have taken
    reasons: tuple[str, ...]  # Kubernetes' message
    facts: tuple[str, ...] = ()
    shortages: tuple[Shortage, ...] = ()

    def __str__(self) -> str:
        """Return the limit in one line, without the nodes."""
        if self.shortages:
            return "; ".join(map(str, self.shortages))
        reasons = ", ".join(self.reasons)
        return f"{reasons} ({'; '.join(self.facts)})" if self.facts else reasons


class NodeFullness(NamedTuple):
    """Why one node is full."""

    texts: tuple[str, ...]  # Kubernetes' reasons
    facts: tuple[str, ...] = ()  # behind the reasons
    shortages: tuple[Shortage, ...] = ()  # of devices, if that is the reason


Fullness = Mapping[str, NodeFullness]  # by node


def fullness_of(refused: UnplacedReplica) -> Fullness:
    """Return why each node rejects the unplaced replica."""
    pending, ready = refused
    names = sorted(pending.diagnosis.node_to_status)
    if ready is None or pending.diagnosis.pre_filter_status is not None:
        return {}
    found = {name: _full(ready, name, pending.diagnosis.node_to_status[name]) for name in names}
    elsewhere = pending.diagnosis.excluded
    if elsewhere is not None:
        unasked = sorted(set(ready.cluster.snapshot.nodes) - found.keys())
        found |= dict.fromkeys(unasked, NodeFullness(elsewhere.reasons))
    return found


def limits_of(
    refused: UnplacedReplica, fullness: Fullness, replicas: Mapping[str, int]
) -> list[Limit]:
    """Return why nodes are full, the limit behind the most replicas first."""
    if not fullness:
        return [Limit((), sum(replicas.values()), (refused.pending.reason,))]
    return grouped(fullness, replicas)


def fullness_alike(
    ready: Attempt, rejections: Mapping[str, Unschedulable], filled: Mapping[str, str]
) -> Fullness:
    """Return why each node is full: for the same reason as the one that was filled for it."""
    full = {name: _full(ready, name, rejection) for name, rejection in rejections.items()}
    return {name: full[filled[name]] for name in sorted(filled)}


def grouped(fullness: Fullness, replicas: Mapping[str, int]) -> list[Limit]:
    """Return nodes that are full for the same reason together, the most replicas first."""
    groups: dict[NodeFullness, list[str]] = {}
    for node, full in fullness.items():
        groups.setdefault(full, []).append(node)
    found = [
        Limit(tuple(nodes), sum(replicas.get(node, 0) for node in nodes), *full)
        for full, nodes in groups.items()
    ]
    return sorted(found, key=lambda limit: (-limit.replicas, -len(limit.nodes), limit.nodes))


def _full(ready: Attempt, node: str, rejection: Unschedulable) -> NodeFullness:
    probe = NodeProbe(ready)
    if rejection != CANNOT_ALLOCATE:
        return NodeFullness(rejection.reasons, tuple(probe.facts(node, rejection)))
    problem = probe.problem(node)
    if problem is None or not problem.stages:
        return NodeFullness(rejection.reasons)
    compiler = ready.cluster.inventory.compiler
    return NodeFullness(
        rejection.reasons, (), _shortages_of(problem, names_of(ready, node), compiler)
    )


# --- leftovers --------------------------------------------------------------------------


class Apart(Struct, frozen=True):
    """Free devices that no replica can use, and why."""

    why: str
    devices: int
    nodes: tuple[str, ...]


class Leftover(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The free devices for one request once no more replicas fit."""

    request: str
    wanted: int
    free: int
    matching: int
    percent: float  # of the devices that match
    apart: tuple[Apart, ...] = ()


def leftovers_of(supplies: Sequence[DeviceSupply], fullness: Fullness) -> tuple[Leftover, ...]:
    """Return the leftovers of each request that takes whole devices."""
    return tuple(_leftover(supply, fullness) for supply in supplies if supply.is_countable)


def _leftover(supply: DeviceSupply, fullness: Fullness) -> Leftover:
    matching = len(supply.matching)
    percent = round(100 * supply.free_count / matching, 1) if matching else 0.0
    return Leftover(
        supply.request,
        supply.wanted,
        supply.free_count,
        matching,
        percent,
        tuple(sorted(_apart(supply, fullness), key=lambda each: (-each.devices, each.why))),
    )


def _apart(supply: DeviceSupply, fullness: Fullness) -> Iterator[Apart]:
    by_reason: dict[str, dict[str, int]] = {}
    for node, devices in supply.free.items():
        why = _why(supply, fullness[node]) if node in fullness else "the node is not asked"
        by_reason.setdefault(why, {})[node] = len(devices)
    for why, nodes in by_reason.items():
        yield Apart(why, sum(nodes.values()), tuple(nodes))


def _why(supply: DeviceSupply, full: NodeFullness) -> str:
    """Return what keeps the devices of a request from being used on a node."""
    if not full.shortages:
        return ", ".join(full.texts)
    own = [short for short in full.shortages if short.request == supply.request]
    if not own:
        others = dict.fromkeys(short.request for short in full.shortages)
        return f"nothing is left there for {', '.join(others)}"
    if any(short.cause is ShortageCause.TOGETHER for short in own):
        return "the requests are in each other's way"
    if any(short.usable >= short.wanted for short in own):
        attributes = dict.fromkeys(short.attribute for short in own)
        return f"not {supply.wanted} with {own[0].detail} {', '.join(attributes)}"
    return f"a node has fewer than the {counted(supply.wanted, 'device')} that are wanted"


# --- shortages of devices ---------------------------------------------------------------


class ShortageCause(Enum):
    """The question that leaves too few devices."""

    NONE_MATCH = "none-match"  # too few match, free or not
    IN_USE = "in-use"
    TAINTED = "tainted"
    AMOUNTS = "amounts"  # counters, capacity, compatibility
    CONSTRAINT = "constraint"
    TOGETHER = "together"  # each request by itself would find enough


_CAUSES = {
    SELECTED: ShortageCause.NONE_MATCH,
    FREE: ShortageCause.IN_USE,
    TOLERATED: ShortageCause.TAINTED,
    FITTING: ShortageCause.AMOUNTS,
    TOGETHER: ShortageCause.CONSTRAINT,
}


class Shortage(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A request that a node has too few devices for."""

    request: str
    cause: ShortageCause
    wanted: int
    matching: int
    free: int  # of the matching
    tainted: int  # of the free, with an untolerated taint
    usable: int  # of the free, each by itself
    detail: str = ""  # what rejects the first unusable device, or what values must be
    attribute: str = ""  # of the constraint
    values: tuple[tuple[str, int], ...] = ()  # of the attribute, with usable devices of each
    alternative: str = ""  # of the request, if it has several

    @property
    def is_own(self) -> bool:
        """Whether the request by itself finds too few devices."""
        if self.cause is not ShortageCause.CONSTRAINT or self.detail == DISTINCT:
            return self.cause is not ShortageCause.TOGETHER
        return all(count < self.wanted for _, count in self.values)

    def __str__(self) -> str:
        which = f", alternative {self.alternative}" if self.alternative else ""
        return f"request {self.request}{which}: {self._fact()}"

    def _fact(self) -> str:
        wanted = f"{self.wanted} wanted"
        match self.cause:
            case ShortageCause.NONE_MATCH if self.matching:
                return f"only {self.matching} match, {wanted}"
            case ShortageCause.NONE_MATCH:
                return f"no device matches, {wanted}"
            case ShortageCause.IN_USE:
                return f"{self.free} free of {self.matching}, {wanted}"
            case ShortageCause.TAINTED | ShortageCause.AMOUNTS:
                there = f"{self.free} free of {self.matching}"
                tainted = f", {self.tainted} tainted" if self.tainted else ""
                return f"{there}{tainted}, {self.usable} usable, {wanted}; {self.detail}"
            case ShortageCause.CONSTRAINT:
                return f"{self.usable} free, {wanted} with {self._values()}"
        return f"{self.usable} free, {wanted}, but not beside the other requests"

    def _values(self) -> str:
        texts = (f"{value or 'none'}: {count} free" for value, count in self.values)
        shown = ", ".join(shortened(texts, VALUES_SHOWN_MAX, "more values"))
        return f"{self.detail} {self.attribute} ({shown})"


def _shortages_of(
    problem: Problem, names: RequestNames, compiler: DeviceCompiler
) -> tuple[Shortage, ...]:
    """Return the requests that run out, with all alternatives of each; at least one."""
    left = devices_left(problem)
    finder = _Finder(problem, names, left, compiler)
    found: list[Shortage] = []
    for stage in problem.stages:
        short = [finder.shortage(slot) for slot in stage]
        if all(short):
            found += [each for each in short if each is not None]
    # A request that is short only because it must match another is not worth reporting.
    found = [each for each in found if each.is_own] or found
    if not found:
        found = list(map(finder.crowded, problem.stages[stuck_at(problem) or 0]))
    return tuple(found)


class _Finder:
    def __init__(
        self,
        problem: Problem,
        names: RequestNames,
        left: Mapping[SubRequest, Sequence[int]],
        compiler: DeviceCompiler,
    ) -> None:
        self._problem = problem
        self._names = names
        self._left = left
        self._fitting = {ask: masks[FITTING] for ask, masks in left.items()}
        self._compiler = compiler

    def shortage(self, slot: Slot) -> Shortage | None:
        """Return why a request finds too few devices; None if it finds enough."""
        masks = self._left[slot.request]
        wanted = max(slot.count, 1)
        for number, cause in _CAUSES.items():
            if masks[number].bit_count() < wanted:
                return self._shortage(slot, cause, number)
        for rule in constraints_of(slot):
            if isinstance(rule, DistinctAttribute) and len(self._by_value(slot, rule)) < wanted:
                return self._constrained(slot, rule)
        return None

    def crowded(self, slot: Slot) -> Shortage:
        """Return that a request would find enough devices by itself."""
        return self._make(slot, ShortageCause.TOGETHER)

    def _shortage(self, slot: Slot, cause: ShortageCause, number: int) -> Shortage:
        if cause is ShortageCause.CONSTRAINT:
            return self._constrained(slot, self._tightest(slot))
        masks = self._left[slot.request]
        lost = masks[number - 1] & ~masks[number]
        detail = ""
        if cause in (ShortageCause.TAINTED, ShortageCause.AMOUNTS) and lost:
            position = next(iter(bits(lost)))
            refusal = rejection_of(
                self._problem, slot, position, STAGES[number], self._fitting, self._compiler
            )
            name = self._problem.view.published[position].device.name
            detail = f"{name}: {rejection_text(refusal)}"
        return self._make(slot, cause, detail)

    def _tightest(self, slot: Slot) -> Constraint:
        """Return the constraint that leaves the fewest devices with one value."""
        rules = constraints_of(slot)
        return min(rules, key=lambda rule: max(self._by_value(slot, rule).values(), default=0))

    def _constrained(self, slot: Slot, rule: Constraint) -> Shortage:
        values = tuple(self._by_value(slot, rule).items())
        kind = DISTINCT if isinstance(rule, DistinctAttribute) else MATCHING
        return self._make(slot, ShortageCause.CONSTRAINT, kind, rule.attribute, values)

    def _by_value(self, slot: Slot, rule: Constraint) -> dict[str, int]:
        """Return how many usable devices have each value."""
        table, is_typed = rule.tables[slot.request], has_types(rule)
        found: dict[str, int] = {}
        for position in bits(self._fitting[slot.request]):
            is_known = table.known >> position & 1
            elements = table.elements[position] if is_known else ()
            value = value_text(elements, is_typed=is_typed) if is_known else ""
            found[value] = found.get(value, 0) + 1
        return dict(sorted(found.items()))

    def _make(
        self,
        slot: Slot,
        cause: ShortageCause,
        detail: str = "",
        attribute: str = "",
        values: tuple[tuple[str, int], ...] = (),
    ) -> Shortage:
        masks = self._left[slot.request]
        counts = [mask.bit_count() for mask in masks]
        name, _, alternative = slot.request.full_name.partition("/")
        request = self._names.of(slot.request.claim, name)
        return Shortage(
            request=request,
            cause=cause,
            wanted=max(slot.count, 1),
            matching=counts[SELECTED],
            free=counts[FREE],
            tainted=counts[FREE] - counts[TOLERATED],
            usable=counts[FITTING],
            detail=detail,
            attribute=attribute,
            values=values,
            alternative=alternative,
        )
