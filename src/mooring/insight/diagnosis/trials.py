"""Trials: what the allocator says to a situation with changes, remembered and bounded.

Most changes concern the claims that are wanted. They are tried on one inventory, whose answers of
expressions stay good; claims are freed in its ledger and put back. A feature or a slice that is
changed needs an inventory of its own. None of them is the caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from mooring.allocator import Allocated, Answer, Failed, Features, Inventory, allocate_wanted
from mooring.allocator.allocation import Budget, Interrupt, Wanted
from mooring.allocator.asks import claim_name, plan_of
from mooring.allocator.ledger import ClaimKey
from mooring.api.resource.v1 import ResourceClaim
from mooring.cel.device import DeviceCompiler
from mooring.insight.diagnosis.applying import applied, changed_claims, changed_classes
from mooring.insight.diagnosis.changes import (
    Change,
    Changes,
    FreeClaim,
    PublishList,
    SwitchFeature,
)
from mooring.insight.diagnosis.situation import Situation


class Effort(NamedTuple):
    """How much a diagnosis may take."""

    trials_max: int = 600
    steps_each_max: int = 2_000  # of a search, after its light part
    steps_max: int = 10_000  # of all searches together, for each part of the diagnosis
    interrupt: Interrupt | None = None  # asked now and then; a text ends the diagnosis


EFFORT = Effort()
NO_CHANGES: Changes = frozenset()
GIVEN_UP = Failed("the diagnosis has taken all its steps", is_given_up=True)


class Trials:
    """Tries changes on a situation."""

    def __init__(
        self,
        situation: Situation,
        *,
        compiler: DeviceCompiler | None = None,
        effort: Effort = EFFORT,
    ) -> None:
        self.situation = situation
        self.count = 0
        self.given_up = 0  # how many trials had no answer
        self._effort = effort
        self._compiler = compiler
        self._steps = 0
        self._answers: dict[Changes, Answer] = {}
        self._benches: dict[Changes, _Bench] = {}
        self._classes = {each.metadata.name: each for each in situation.classes}

    @property
    def inventory(self) -> Inventory:
        """The inventory of the situation as it is."""
        bench = self._bench(NO_CHANGES)
        bench.free(())
        return bench.inventory

    def begin(self) -> None:
        """Begin another part of the diagnosis, which has all its steps before it."""
        self._steps = 0

    def answer(self, changes: Collection[Change] = ()) -> Answer:
        """Return what the allocator says to the situation with the changes."""
        key = frozenset(changes)
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._tried(key)
        return found

    def is_possible(self, changes: Collection[Change] = ()) -> bool | None:
        """Return whether all claims can be allocated then; None if that took too long."""
        answer = self.answer(changes)
        if isinstance(answer, Failed) and answer.is_given_up:
            return None
        return isinstance(answer, Allocated)

    def _tried(self, changes: Changes) -> Answer:
        effort = self._effort
        steps_left = effort.steps_max - self._steps
        is_late = effort.interrupt is not None and effort.interrupt() is not None
        if self.count >= effort.trials_max or steps_left <= 0 or is_late:
            self.given_up += 1
            return GIVEN_UP
        self.count += 1
        bench = self._bench(changes)
        bench.free({(c.namespace, c.name) for c in changes if isinstance(c, FreeClaim)})
        budget = Budget(steps=min(effort.steps_each_max, steps_left), interrupt=effort.interrupt)
        claims = changed_claims(self.situation, changes)
        classes = self._classes
        if changes:
            classes = {c.metadata.name: c for c in changed_classes(self.situation, changes)}
        plan = plan_of(claims, features=bench.inventory.features, classes=classes.get)
        wanted = Wanted(claims, [claim_name(claim) for claim in claims], plan)
        answer = allocate_wanted(bench.inventory, self.situation.node, wanted, budget=budget)
        self._steps += answer.steps
        if isinstance(answer, Failed) and answer.is_given_up:
            self.given_up += 1
            self._steps += budget.steps
        return answer

    def _bench(self, changes: Changes) -> _Bench:
        """Return a bench on which the features and slices are as changed."""
        key = frozenset(c for c in changes if isinstance(c, SwitchFeature | PublishList))
        bench = self._benches.get(key)
        if bench is None:
            bench = self._benches[key] = _Bench(applied(self.situation, key), self._compiler)
        return bench


class _Bench:
    """An inventory to try things on, and the claims whose devices are given back for now."""

    def __init__(self, situation: Situation, compiler: DeviceCompiler | None) -> None:
        self.inventory = _filled(situation, situation.features, compiler)
        self._claims: Mapping[ClaimKey, ResourceClaim] = {
            (claim.metadata.namespace, claim.metadata.name): claim for claim in situation.allocated
        }
        self._freed: set[ClaimKey] = set()

    def free(self, keys: Collection[ClaimKey]) -> None:
        """Let these claims, and no others, have given back their devices."""
        wanted = set(keys)
        for key in self._freed - wanted:
            self.inventory.put_claim(self._claims[key])
        for key in wanted - self._freed:
            self.inventory.remove_claim(*key)
        self._freed = wanted


def _filled(situation: Situation, features: Features, compiler: DeviceCompiler | None) -> Inventory:
    inventory = Inventory(features, compiler=compiler)
    for number, slice_ in enumerate(situation.slices):
        inventory.put_slice(slice_, key=f"{slice_.metadata.name} {number}")
    for device_class in situation.classes:
        inventory.put_class(device_class)
    for claim in situation.allocated:
        inventory.put_claim(claim)
    return inventory
