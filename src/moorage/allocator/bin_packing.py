"""Decide whether picks can be packed into devices that can be shared, the rest going to others.

Bins are filled one by one, not pick by pick: of the fillings of one bin, only those count to which
nothing can be added, the heaviest picks first. The remaining demand is a vector, and a
vector that failed once is not tried again, nor in a later check of the same devices. Near capacity
little may be wasted, which sums show early.

    # needs: how many devices each group still wants
    # bin: a device that can be shared, as far as the groups can use it
    # filling: how many picks of each group go into one bin
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from moorage.allocator.bounds import has_flow
from moorage.allocator.errors import OutOfStepsError
from moorage.allocator.pools import bits, mask_of
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.remaining import SlotGroup
from moorage.allocator.rules.base import States
from moorage.allocator.rules.consumption import ConsumptionRule, field_width

Vector = tuple[int, ...]


# The bins from a place on, with their rest, and the devices that the groups may use.
_Situation = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, bool, int], ...]]

FAILURES_MAX = 100_000


class Bin(NamedTuple):
    """A shareable device, and how much of it one pick of each group consumes."""

    left: int  # packed
    guards: int
    takes: tuple[int, ...]  # by group
    at_most: Vector  # by group; 0: the group cannot use it


class BinPacking:
    """One check whether the groups can be filled."""

    def __init__(
        self,
        problem: Problem,
        amounts: ConsumptionRule,
        groups: Sequence[SlotGroup],
        states: States,
        *,
        like: Mapping[Slot, int],
        failed: set[object],
        interrupt: Callable[[], None],
    ) -> None:
        self._like = like
        self._failed = failed  # outlives the check
        self._dead: set[tuple[int, Vector]] = set()  # those and what sums exclude, in this check
        self._interrupt = interrupt  # called now and then; may raise
        self.picks: list[tuple[Slot, int]] = []  # those of a packing that was found, in bins
        self.steps = 0
        self._steps_max = 0
        self._groups = groups
        shareable = problem.view.shareable
        boundless = shareable & ~mask_of(amounts.capacity)
        self._needs = tuple([_need(group, group.domain & boundless) for group in groups])
        self._elsewhere = [group.domain & ~shareable for group in groups]
        bins = self._bins(amounts, states, shareable & ~boundless)
        # Like ones side by side; those with more capacities, and the emptier ones, first. Waste in
        # them shows in the sums, so impossible needs are detected thousands of times sooner.
        bins.sort(key=lambda bin_: (-bin_[1].left, bin_[1]))
        self._positions = [position for position, _ in bins]
        self._bins_in_order = [bin_ for _, bin_ in bins]
        self._situations: list[_Situation | None] = [None] * len(bins)
        self._sums = _Sums(problem, bins, self._elsewhere)
        self._larger = _larger(groups, self._bins_in_order)

    def _bins(self, amounts: ConsumptionRule, states: States, shared: int) -> list[tuple[int, Bin]]:
        taken = states[amounts.index]
        domain = 0
        for group in self._groups:
            domain |= group.domain
        bins = []
        for position in bits(domain & shared):
            account = amounts.capacity[position]
            left = taken.get(account, amounts.left[account])
            assert left is not None  # or no group could afford it
            bins.append(
                (
                    position,
                    Bin(
                        left,
                        amounts.guards[account],
                        tuple([group.slot.takes.get(position, 0) for group in self._groups]),
                        tuple([_at_most(group, position) for group in self._groups]),
                    ),
                )
            )
        return bins

    def is_possible(self, *, steps_max: int) -> bool:
        """Return whether the groups can be filled; raise OutOfStepsError if it takes too long."""
        self._steps_max = steps_max
        return self._pack(0, self._needs)

    def _pack(self, place: int, needs: Vector) -> bool:
        """Return whether the bins from a place on, and other devices, can meet the needs."""
        if not any(needs):
            return True
        if place == len(self._bins_in_order):
            return has_flow(
                [(n, free) for n, free in zip(needs, self._elsewhere, strict=True) if n]
            )
        if (place, needs) in self._dead:
            return False
        if self._sums.exceed(place, needs) or not self._fill(place, needs):
            self._dead.add((place, needs))
            return False
        return True

    def _fill(self, place: int, needs: Vector) -> bool:
        """Return whether the bin at a place can be filled so that the others can meet the rest."""
        key = self._key(place, needs)
        if key in self._failed:
            return False
        self.steps += 1
        if self.steps > self._steps_max:
            raise OutOfStepsError
        fillings = maximal_fillings(self._bins_in_order[place], needs, self._larger)
        self._interrupt()
        for tries, filling in enumerate(fillings):
            self.steps += not tries % 8
            rest = tuple([need - given for need, given in zip(needs, filling, strict=True)])
            if self._pack(place + 1, rest):
                self._note(place, filling)
                return True
        if len(self._failed) < FAILURES_MAX:
            self._failed.add(key)
        return False

    def _note(self, place: int, filling: Vector) -> None:
        """Keep the picks of a filling that led to a packing."""
        position = self._positions[place]
        for group, count in zip(self._groups, filling, strict=True):
            self.picks += [(group.slot, position)] * count

    def _key(self, place: int, needs: Vector) -> object:
        """Return everything that decides whether the bins from a place on can meet the needs."""
        situation = self._situations[place]
        if situation is None:
            situation = self._situations[place] = self._situation(place)
        bins, groups = situation
        return (bins, tuple([(g, need) for g, need in zip(groups, needs, strict=True) if need]))

    def _situation(self, place: int) -> _Situation:
        positions = self._positions[place:]
        within = mask_of(positions)
        bins = tuple(
            [(p, b.left) for p, b in zip(positions, self._bins_in_order[place:], strict=True)]
        )
        groups = tuple(
            [
                (self._like[group.slot], group.repeats, group.domain & within | elsewhere)
                for group, elsewhere in zip(self._groups, self._elsewhere, strict=True)
            ]
        )
        return bins, groups


def _need(group: SlotGroup, boundless: int) -> int:
    """Return how many devices with limited capacity a group wants."""
    if group.repeats and boundless:
        return 0
    return max(group.need - boundless.bit_count(), 0)


def _at_most(group: SlotGroup, position: int) -> int:
    """Return how often a group may use a device: a request takes it only once."""
    if not group.domain >> position & 1:
        return 0
    return group.need if group.repeats else 1


def maximal_fillings(
    bin_: Bin, needs: Vector, larger: Sequence[tuple[int, int]] = ()
) -> Iterator[Vector]:
    """Yield the fillings of a bin that are worth trying, with most of the first groups first.

    A filling is not worth trying if a pick can be added, or if a pick can be exchanged for a
    larger one of another group: the smaller one fits wherever the larger one would go.
    """
    guards = bin_.guards
    takes = bin_.takes
    most = [min(need, at_most) for need, at_most in zip(needs, bin_.at_most, strict=True)]
    usable = [(group, takes[group], limit) for group, limit in enumerate(most) if limit]
    exchanges = [
        (small, large, takes[small] - takes[large])
        for small, large in larger
        if most[small] and most[large]
    ]
    laters = _laters(bin_, usable)
    last = len(usable) - 1
    counts = [0] * len(needs)

    def is_worth_trying(left: int) -> bool:
        guarded = left | guards
        for group, take, limit in usable:
            if counts[group] < limit and (guarded - take) & guards == guards:
                return False
        for small, large, change in exchanges:
            if (
                counts[small]
                and counts[large] < most[large]
                and (guarded + change) & guards == guards
            ):
                return False
        return True

    def fill(number: int, left: int) -> Iterator[Vector]:
        group, take, limit = usable[number]
        lefts = [left]
        while len(lefts) <= limit:
            rest = (lefts[-1] | guards) - take
            if rest & guards != guards:
                break
            lefts.append(rest ^ guards)
        if number == last:
            counts[group] = len(lefts) - 1
            if is_worth_trying(lefts[-1]):
                yield tuple(counts)
        else:
            later = laters[number]
            for count in range(len(lefts) - 1, -1, -1):
                counts[group] = count
                yield from fill(number + 1, lefts[count])
                if later is not None and ((lefts[count] | guards) - later) & guards == guards:
                    break  # With fewer, one more would fit whatever comes later.
        counts[group] = 0

    return fill(0, bin_.left) if usable else iter([tuple(counts)])


def _laters(bin_: Bin, usable: Sequence[tuple[int, int, int]]) -> list[int | None]:
    """Return what all groups after each one take together; None if the bin has less."""
    guards = bin_.guards
    found: list[int | None] = [0]
    left = bin_.left
    for _, take, limit in reversed(usable[1:]):
        for _ in range(limit):
            rest = (left | guards) - take
            if rest & guards != guards:
                return [*[None] * (len(usable) - len(found)), *reversed(found)]
            left = rest ^ guards
        found.append(bin_.left - left)
    return found[::-1]


def _larger(groups: Sequence[SlotGroup], bins: Sequence[Bin]) -> list[tuple[int, int]]:
    """Return the pairs of groups of which the first fits wherever the second does."""
    found = []
    for small, group in enumerate(groups):
        if not group.repeats and group.need > 1:
            continue
        for large, other in enumerate(groups):
            if small == large or other.domain & ~group.domain:
                continue
            is_smaller = [
                (bin_.takes[large] | bin_.guards) - bin_.takes[small] & bin_.guards == bin_.guards
                for bin_ in bins
                if bin_.at_most[large]
            ]
            is_same = all(b.takes[large] == b.takes[small] for b in bins if b.at_most[large])
            if all(is_smaller) and (large < small or not is_same):
                found.append((small, large))
    return found


class _Sums:
    """The sum over the bins from a place on, for each capacity."""

    def __init__(
        self, problem: Problem, bins: Sequence[tuple[int, Bin]], elsewhere: Sequence[int]
    ) -> None:
        free = 0
        for devices in elsewhere:
            free |= devices
        self._escapes = free.bit_count()
        self._left: list[list[int]] = []  # by capacity, by place
        self._least: list[Vector] = []  # by capacity, by group: the least that a pick takes
        names = sorted({n for p, _ in bins for n in problem.view.devices[p].capacity})
        for name in names:
            left, least = _column(problem, bins, name, len(elsewhere))
            for place in reversed(range(len(left) - 1)):
                left[place] += left[place + 1]
            self._left.append([*left, 0])
            self._least.append(least)

    def exceed(self, place: int, needs: Vector) -> bool:
        """Return whether the needs are more than the bins from a place on have."""
        for left, least in zip(self._left, self._least, strict=True):
            total = sum([a * n for a, n in zip(least, needs, strict=True)])
            if total <= left[place]:
                continue
            escapes = self._escapes
            for amount, need in sorted(zip(least, needs, strict=True), reverse=True):
                spared = min(escapes, need)
                total -= spared * amount
                escapes -= spared
                if not escapes:
                    break
            if total > left[place]:
                return True
        return False


def _column(
    problem: Problem, bins: Sequence[tuple[int, Bin]], name: str, groups: int
) -> tuple[list[int], Vector]:
    """Return what each bin has of a capacity, and the least that each group takes of it."""
    left: list[int] = []
    least: list[int | None] = [None] * groups
    for position, bin_ in bins:
        fields = sorted(problem.view.devices[position].capacity)
        if name not in fields:
            left.append(0)
            for group in range(groups):
                if bin_.at_most[group]:
                    least[group] = 0
            continue
        width = field_width(problem.view, position)
        shift = fields.index(name) * width
        mask = (1 << width - 1) - 1
        left.append(bin_.left >> shift & mask)
        for group in range(groups):
            if bin_.at_most[group]:
                amount = bin_.takes[group] >> shift & mask
                before = least[group]
                least[group] = amount if before is None else min(before, amount)
    return left, tuple([amount or 0 for amount in least])
