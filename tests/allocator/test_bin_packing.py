"""Packing: picks fit into devices exactly if some way to put them there does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, islice, product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.allocator.bin_packing import Bin, BinPacking, Vector, maximal_fillings
from moorage.allocator.errors import OutOfStepsError
from moorage.allocator.pools import bits
from moorage.allocator.problem import Problem
from moorage.allocator.remaining import SlotGroup
from moorage.allocator.rules.consumption import ConsumptionRule
from moorage.api.resource.v1 import Device
from tests.allocator.problems.parts import amounts, claim
from tests.allocator.scenes import HERE, gpu, inventory, published, shareable

# --- the fillings of one bin ------------------------------------------------------------------

WIDTH = 6
GUARDS = (1 << WIDTH - 1) | (1 << 2 * WIDTH - 1)
PAIRS = st.tuples(st.integers(0, 5), st.integers(0, 5))


def packed(pair: tuple[int, int]) -> int:
    return pair[0] | pair[1] << WIDTH


def fillings(left: tuple[int, int], takes: list[tuple[int, int]], most: Vector) -> set[Vector]:
    """Return all ways to fill a bin, by trying each."""
    return {
        counts
        for counts in product(*(range(limit + 1) for limit in most))
        if all(
            sum(take[axis] * count for take, count in zip(takes, counts, strict=True)) <= left[axis]
            for axis in (0, 1)
        )
    }


@settings(max_examples=150)
@given(
    left=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    groups=st.lists(st.tuples(PAIRS, st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3),
)
def test_the_fillings_of_a_bin_are_those_to_which_nothing_can_be_added(
    left: tuple[int, int], groups: list[tuple[tuple[int, int], int, int]]
) -> None:
    takes = [take for take, _, _ in groups]
    at_most = tuple(limit for _, limit, _ in groups)
    needs = tuple(need for _, _, need in groups)
    bin_ = Bin(packed(left), GUARDS, tuple(map(packed, takes)), at_most)
    most = tuple(map(min, needs, at_most))
    possible = fillings(left, takes, most)
    maximal = {
        way
        for way in possible
        if not any(
            (*way[:place], way[place] + 1, *way[place + 1 :]) in possible
            for place in range(len(way))
        )
    }
    found = list(maximal_fillings(bin_, needs))
    assert len(found) == len(set(found))
    assert set(found) == maximal


def test_the_filling_with_most_of_the_first_group_comes_first() -> None:
    bin_ = Bin(7, 1 << WIDTH - 1, (3, 5), (2, 1))
    assert list(maximal_fillings(bin_, (2, 1))) == [(2, 0), (0, 1)]


def test_a_pick_is_exchanged_for_a_larger_one_that_fits() -> None:
    bin_ = Bin(7, 1 << WIDTH - 1, (3, 4), (2, 2))
    assert set(maximal_fillings(bin_, (2, 2))) == {(2, 0), (1, 1)}
    assert list(maximal_fillings(bin_, (2, 2), [(0, 1)])) == [(1, 1)]


# --- many bins --------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """Requests that are alike: so many for one device each, or one for so many devices."""

    memory: int
    picks: int
    is_one_request: bool


WANTED = st.builds(Wanted, st.integers(0, 5), st.integers(1, 3), st.booleans())
SIZES = st.lists(st.one_of(st.none(), st.integers(0, 8)), max_size=3)


def posed(sizes: Sequence[int | None], exclusive: int, wanted: Sequence[Wanted]) -> Problem:
    """Return a problem with shareable devices of these sizes, and some exclusive ones."""
    devices = [
        shareable(f"shared-{n}", **({} if size is None else {"memory": str(size)}))
        for n, size in enumerate(sizes)
    ]
    devices += [
        Device(name=f"whole-{n}", capacity=shareable("", memory="9").capacity)
        for n in range(exclusive)
    ]
    requests = [
        gpu(f"r{number}-{n}", group.picks if group.is_one_request else 1, capacity=ask(group))
        for number, group in enumerate(wanted)
        for n in range(1 if group.is_one_request else group.picks)
    ]
    found = inventory(published(*devices))
    return found.problem(HERE, found.plan([claim("claim", requests)]))


def ask(group: Wanted) -> object:
    # Who asks for nothing can use devices without capacity as well.
    return amounts({"memory": str(group.memory)}) if group.memory else None


def groups_of(problem: Problem, wanted: Sequence[Wanted]) -> list[SlotGroup]:
    slots = iter(problem.stages)
    found = []
    for group in wanted:
        ((slot,), *_) = islice(slots, 1 if group.is_one_request else group.picks)
        repeats = not group.is_one_request and bool(slot.candidates & problem.view.shareable)
        found.append(SlotGroup(slot, group.picks, slot.candidates, repeats))
    return found


def ways(groups: Sequence[SlotGroup], sharable: int) -> Iterator[list[tuple[SlotGroup, int]]]:
    """Yield every way to give devices to groups, exclusive ones to one pick each."""
    choices = [
        (combinations_with_replacement if group.repeats else combinations)(
            bits(group.domain), group.need
        )
        for group in groups
    ]
    for chosen in product(*choices):
        picks = [(g, p) for g, each in zip(groups, chosen, strict=True) for p in each]
        exclusive = [p for _, p in picks if not sharable >> p & 1]
        if len(set(exclusive)) == len(exclusive):
            yield picks


def fits(problem: Problem, picks: Sequence[tuple[SlotGroup, int]]) -> bool:
    used: dict[int, int] = {}
    for group, position in picks:
        taken = group.slot.consumed.get(position, {}).get("memory")
        if taken is not None:
            used[position] = used.get(position, 0) + taken.nano
    spots = problem.view.published
    return all(
        total <= spots[position].device.capacity["memory"].value.nano
        for position, total in used.items()
        if problem.view.shareable >> position & 1
    )


def packing_of(problem: Problem, groups: Sequence[SlotGroup]) -> BinPacking:
    rules = [rule for rule in problem.rules if isinstance(rule, ConsumptionRule)]
    like = {group.slot: number for number, group in enumerate(groups)}
    return BinPacking(
        problem,
        rules[0],
        groups,
        problem.start,
        like=like,
        failed=set(),
        interrupt=lambda: None,
    )


@settings(max_examples=150)
@given(
    sizes=SIZES.filter(lambda sizes: any(size is not None for size in sizes)),
    exclusive=st.integers(0, 2),
    wanted=st.lists(WANTED, min_size=1, max_size=3),
    data=st.data(),
)
def test_picks_can_be_packed_exactly_if_some_way_fits(
    sizes: list[int | None], exclusive: int, wanted: list[Wanted], data: st.DataObject
) -> None:
    problem = posed(sizes, exclusive, wanted)
    groups = data.draw(st.permutations(groups_of(problem, wanted)))
    found = packing_of(problem, groups).is_possible(steps_max=10_000)
    shared = problem.view.shareable
    assert found == any(fits(problem, picks) for picks in ways(groups, shared))


def test_a_packing_that_takes_too_long_is_given_up() -> None:
    wanted = [Wanted(3, 3, is_one_request=False), Wanted(2, 2, is_one_request=False)]
    problem = posed([5, 5, 5], 0, wanted)
    packing = packing_of(problem, groups_of(problem, wanted))
    with pytest.raises(OutOfStepsError):
        packing.is_possible(steps_max=0)
    assert packing.is_possible(steps_max=100)
