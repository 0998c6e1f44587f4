"""Laws of the allocator, on random problems: it answers as the plain search does, always."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

import pytest

from conformance import _plain as plain
from conformance._allocation import Problem
from conformance.allocator import COMPILER, answer, answer_with, filled, lazy_answer
from moorage.allocator import Allocated, Features, Inventory, allocate
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from tests.allocator.problems import FAMILIES, NEAR_CAPACITY, SMALL, problem
from tests.allocator.worlds import described, shuffled

SEEDS = range(600)
FEW_SEEDS = range(60)

families = pytest.mark.parametrize("family", FAMILIES)


@families
def test_the_answer_is_that_of_the_plain_search(family: str) -> None:
    for seed in SEEDS:
        found = problem(family, SMALL, seed)
        expected = described(plain.allocate(found))
        assert described(answer(found)) == expected, f"problem({family!r}, SMALL, {seed})"


@families
def test_it_is_the_same_if_devices_are_asked_one_by_one(family: str) -> None:
    for seed in range(200):
        found = problem(family, SMALL, seed)
        expected = described(plain.allocate(found))
        assert described(lazy_answer(found)) == expected, f"problem({family!r}, SMALL, {seed})"


@families
def test_near_capacity_it_still_is_where_the_plain_search_ends(family: str) -> None:
    for seed in FEW_SEEDS:
        found = problem(family, NEAR_CAPACITY, seed)
        try:
            expected = described(plain.allocate(found, steps_max=300))
        except plain.TooManyStepsError:
            continue
        assert described(answer(found)) == expected, f"problem({family!r}, NEAR_CAPACITY, {seed})"
        assert described(lazy_answer(found)) == expected, (family, seed)


@families
def test_giving_a_device_back_never_makes_it_worse(family: str) -> None:
    for seed in SEEDS:
        found = problem(family, SMALL, seed)
        # While a share is held, further shares of the device do not pay for its counters.
        whole = [claim for claim in found.allocated if not _has_shares(claim)]
        if not whole or answer(found).outcome != "allocated":
            continue
        freed = replace(found, allocated=tuple(c for c in found.allocated if c is not whole[0]))
        # A device that is free again may be one that cannot be judged; that is no "none".
        assert answer(freed).outcome != "none", (family, seed)


def _has_shares(claim: ResourceClaim) -> bool:
    assert claim.status.allocation is not None
    return any(result.share_id for result in claim.status.allocation.devices.results)


@families
def test_the_order_of_objects_and_keys_does_not_matter(family: str) -> None:
    for seed in FEW_SEEDS:
        found = problem(family, SMALL, seed)
        other = shuffled(found, Random(seed))
        assert described(answer(other)) == described(answer(found)), (family, seed)


@families
def test_asking_changes_nothing(family: str) -> None:
    for seed in FEW_SEEDS:
        found = problem(family, SMALL, seed)
        inventory = filled(found)
        first = described(answer_with(inventory, found))
        assert described(answer_with(inventory, found)) == first, (family, seed)


@families
def test_an_inventory_has_no_memory_of_its_history(family: str) -> None:
    for seed in FEW_SEEDS:
        random = Random(f"history {seed}")
        first, second = problem(family, SMALL, seed), problem(family, SMALL, seed + 1000)
        world = _World(first)
        for _ in range(12):
            world.change(random, random.choice([first, second]))
            asked = replace(world.problem(), claims=random.choice([first, second]).claims)
            expected = described(plain.allocate(asked))
            assert described(answer_with(world.inventory, asked)) == expected, (family, seed)


def test_a_refilled_inventory_is_as_good_as_new() -> None:
    for seed in FEW_SEEDS:
        found = problem("mixed", SMALL, seed)
        inventory = filled(found)
        answer_with(inventory, found)
        for slice_ in found.slices:
            inventory.remove_slice(slice_.metadata.name)
        for class_ in found.classes:
            inventory.remove_class(class_.metadata.name)
        for claim in found.allocated:
            inventory.remove_claim(claim.metadata.namespace, claim.metadata.name)
        _put_all(inventory, found)
        assert described(answer_with(inventory, found)) == described(answer(found)), seed


def test_every_share_gets_an_id_of_its_own() -> None:
    shares = 0
    for seed in FEW_SEEDS:
        found = problem("consumable", SMALL, seed)
        allocation = allocate(filled(found), found.node, found.claims)
        if isinstance(allocation, Allocated):
            numbers = count()
            results = allocation.results(map(str, numbers).__next__)
            given = [r.share_id for result in results for r in result.devices.results]
            ids = [share for share in given if share is not None]
            assert sorted(map(int, ids)) == list(range(len(ids)))
            assert next(numbers) == len(ids)
            shares += len(ids)
    assert shares > 0


# --- histories ----------------------------------------------------------------------------


class _World:
    """Objects that come and go, and the inventory that is told of it."""

    def __init__(self, start: Problem) -> None:
        self._start = start
        self.inventory = Inventory(Features.named(sorted(start.features)), compiler=COMPILER)
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        for class_ in start.classes:
            self._put_class(class_)

    def problem(self) -> Problem:
        """Return the problem that the objects of now pose."""
        return replace(
            self._start,
            classes=tuple(self.classes.values()),
            slices=tuple(self.slices.values()),
            allocated=tuple(self.claims.values()),
        )

    def change(self, random: Random, source: Problem) -> None:
        """Put some objects of a problem, and remove some that are there."""
        for slice_ in source.slices:
            if random.random() < 0.5:
                self.slices[slice_.metadata.name] = slice_
                self.inventory.put_slice(slice_)
        for claim in source.allocated:
            if random.random() < 0.4:
                self.claims[claim.metadata.namespace, claim.metadata.name] = claim
                self.inventory.put_claim(claim)
        for class_ in source.classes:
            if random.random() < 0.3:
                self._put_class(class_)
        self._remove(random)

    def _put_class(self, class_: DeviceClass) -> None:
        self.classes[class_.metadata.name] = class_
        self.inventory.put_class(class_)

    def _remove(self, random: Random) -> None:
        for name in [name for name in self.slices if random.random() < 0.15]:
            del self.slices[name]
            self.inventory.remove_slice(name)
        for key in [key for key in self.claims if random.random() < 0.3]:
            del self.claims[key]
            self.inventory.remove_claim(*key)
        for name in [name for name in self.classes if random.random() < 0.05]:
            del self.classes[name]
            self.inventory.remove_class(name)


def _put_all(inventory: Inventory, found: Problem) -> None:
    for claim in found.allocated:
        inventory.put_claim(claim)
    for class_ in found.classes:
        inventory.put_class(class_)
    for slice_ in reversed(found.slices):
        inventory.put_slice(slice_)
