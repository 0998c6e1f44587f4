"""Which request runs out on a node, and why: the first question that leaves too few devices.

Requests are looked at one by one, as things are before anything is picked. Where each by itself
would find enough, they are in each other's way; then the first is named that does not go with
those before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from mooring.allocator.asks import Ask
from mooring.allocator.bits import bits
from mooring.allocator.problem import Problem, Slot
from mooring.allocator.rules.constraints import Constraint, DistinctAttribute
from mooring.allocator.trace import stuck_at
from mooring.cel.device import DeviceCompiler
from mooring.insight.explain.device_rejections import constraints_of, rejection_of, value_text
from mooring.insight.explain.funnel import (
    FITTING,
    FREE,
    SELECTED,
    STAGES,
    TOGETHER,
    TOLERATED,
    devices_left,
)
from mooring.insight.explain.phrases import refusal_text
from mooring.insight.fit.stocks import Names

VALUES_SHOWN_MAX = 6
MATCHING, DISTINCT = "one", "a distinct"  # what a constraint wants of the values


class Cause(Enum):
    """What leaves too few devices."""

    NONE_MATCH = "none-match"  # too few are selected, whoever has them
    IN_USE = "in-use"
    TAINTED = "tainted"
    AMOUNTS = "amounts"  # counters, capacity, what goes beside devices in use
    CONSTRAINT = "constraint"
    TOGETHER = "together"  # each request by itself would find enough


_CAUSES = {
    SELECTED: Cause.NONE_MATCH,
    FREE: Cause.IN_USE,
    TOLERATED: Cause.TAINTED,
    FITTING: Cause.AMOUNTS,
    TOGETHER: Cause.CONSTRAINT,
}


class Shortage(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A request that a node has too few devices for."""

    request: str
    cause: Cause
    wanted: int
    matching: int
    free: int  # of these, those that nobody has
    tainted: int  # of these, those with a taint that is not tolerated
    usable: int  # of the free, those that nothing else speaks against, each by itself
    detail: str = (
        ""  # what speaks against the first that is not usable, or what is wanted of values
    )
    attribute: str = ""  # of the constraint
    values: tuple[tuple[str, int], ...] = ()  # of the attribute, with usable devices of each
    alternative: str = ""  # of the request, if it has several

    @property
    def is_own(self) -> bool:
        """Whether the request by itself finds too few devices."""
        if self.cause is not Cause.CONSTRAINT or self.detail == DISTINCT:
            return self.cause is not Cause.TOGETHER
        return all(count < self.wanted for _, count in self.values)

    def __str__(self) -> str:
        which = f", alternative {self.alternative}" if self.alternative else ""
        return f"request {self.request}{which}: {self._fact()}"

    def _fact(self) -> str:
        wanted = f"{self.wanted} wanted"
        match self.cause:
            case Cause.NONE_MATCH if self.matching:
                return f"only {self.matching} match, {wanted}"
            case Cause.NONE_MATCH:
                return f"no device matches, {wanted}"
            case Cause.IN_USE:
                return f"{self.free} free of {self.matching}, {wanted}"
            case Cause.TAINTED | Cause.AMOUNTS:
                there = f"{self.free} free of {self.matching}"
                tainted = f", {self.tainted} tainted" if self.tainted else ""
                return f"{there}{tainted}, {self.usable} usable, {wanted}; {self.detail}"
            case Cause.CONSTRAINT:
                return f"{self.usable} free, {wanted} with {self._values()}"
        return f"{self.usable} free, {wanted}, but not beside the other requests"

    def _values(self) -> str:
        shown = [f"{value or 'none'}: {count} free" for value, count in self.values]
        more = len(shown) - VALUES_SHOWN_MAX
        if more > 0:
            shown = [*shown[:VALUES_SHOWN_MAX], f"{more} more values"]
        return f"{self.detail} {self.attribute} ({', '.join(shown)})"


def shortages_of(problem: Problem, names: Names, compiler: DeviceCompiler) -> tuple[Shortage, ...]:
    """Return the requests that run out, all alternatives of each; at least one."""
    left = devices_left(problem)
    finder = _Finder(problem, names, left, compiler)
    found: list[Shortage] = []
    for stage in problem.stages:
        short = [finder.shortage(slot) for slot in stage]
        if all(short):
            found += [each for each in short if each is not None]
    # One that is short only because another must match it is not worth a word beside that one.
    found = [each for each in found if each.is_own] or found
    if not found:
        found = list(map(finder.crowded, problem.stages[stuck_at(problem) or 0]))
    return tuple(found)


class _Finder:
    def __init__(
        self,
        problem: Problem,
        names: Names,
        left: Mapping[Ask, Sequence[int]],
        compiler: DeviceCompiler,
    ) -> None:
        self._problem = problem
        self._names = names
        self._left = left
        self._fitting = {ask: masks[FITTING] for ask, masks in left.items()}
        self._compiler = compiler

    def shortage(self, slot: Slot) -> Shortage | None:
        """Return why an ask finds too few devices; None if it finds enough."""
        masks = self._left[slot.ask]
        wanted = max(slot.count, 1)
        for number, cause in _CAUSES.items():
            if masks[number].bit_count() < wanted:
                return self._shortage(slot, cause, number)
        for rule in constraints_of(slot):
            if isinstance(rule, DistinctAttribute) and len(self._by_value(slot, rule)) < wanted:
                return self._constrained(slot, rule)
        return None

    def crowded(self, slot: Slot) -> Shortage:
        """Return that an ask would find enough by itself."""
        return self._make(slot, Cause.TOGETHER)

    def _shortage(self, slot: Slot, cause: Cause, number: int) -> Shortage:
        if cause is Cause.CONSTRAINT:
            return self._constrained(slot, self._tightest(slot))
        masks = self._left[slot.ask]
        lost = masks[number - 1] & ~masks[number]
        detail = ""
        if cause in (Cause.TAINTED, Cause.AMOUNTS) and lost:
            position = next(iter(bits(lost)))
            refusal = rejection_of(
                self._problem, slot, position, STAGES[number], self._fitting, self._compiler
            )
            name = self._problem.view.spots[position].device.name
            detail = f"{name}: {refusal_text(refusal)}"
        return self._make(slot, cause, detail)

    def _tightest(self, slot: Slot) -> Constraint:
        """Return the constraint that leaves the fewest devices with one value."""
        rules = constraints_of(slot)
        return min(rules, key=lambda rule: max(self._by_value(slot, rule).values(), default=0))

    def _constrained(self, slot: Slot, rule: Constraint) -> Shortage:
        values = tuple(self._by_value(slot, rule).items())
        kind = DISTINCT if isinstance(rule, DistinctAttribute) else MATCHING
        return self._make(slot, Cause.CONSTRAINT, kind, rule.attribute, values)

    def _by_value(self, slot: Slot, rule: Constraint) -> dict[str, int]:
        """Return how many usable devices have each value."""
        table = rule.tables[slot.ask]
        found: dict[str, int] = {}
        for position in bits(self._fitting[slot.ask]):
            is_known = table.known >> position & 1
            value = value_text(table.elements[position]) if is_known else ""
            found[value] = found.get(value, 0) + 1
        return dict(sorted(found.items()))

    def _make(
        self,
        slot: Slot,
        cause: Cause,
        detail: str = "",
        attribute: str = "",
        values: tuple[tuple[str, int], ...] = (),
    ) -> Shortage:
        masks = self._left[slot.ask]
        counts = [mask.bit_count() for mask in masks]
        name, _, alternative = slot.ask.full_name.partition("/")
        request = self._names.of(slot.ask.claim, name)
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
