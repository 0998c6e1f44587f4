"""Trials: what the allocator says to a situation with changes, remembered and bounded.

Most changes concern the claims that are wanted. They are tried on one inventory, whose answers of
expressions stay good; claims are freed in its ledger and put back. A feature or a slice that is
changed needs an inventory of its own. None of them is the caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
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
    """How much each part of a diagnosis may take."""

    trials_max: int = 300
    steps_each_max: int = 2_000  # of a search, after its light part
    steps_max: int = 10_000  # of all searches together
    interrupt: Interrupt | None = None  # asked now and then; a text ends the diagnosis


EFFORT = Effort()
NO_CHANGES: Changes = frozenset()


class Kind(Enum):
    """What a trial comes to."""

    POSSIBLE = "possible"
    UNSATISFIED = "unsatisfied"
    FAULTY = "faulty"
    GIVEN_UP = "given up"


class Outcome(NamedTuple):
    """What the allocator said in a trial, less what is heavy to keep."""

    kind: Kind
    message: str = ""  # of a fault
    node_only: bool = False


SPENT = Outcome(Kind.GIVEN_UP, "the diagnosis has taken all its steps")
ENDED = Outcome(Kind.GIVEN_UP)  # by an interrupt, which `Trials.ended_by` has


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
        self.ended_by = ""  # the interrupt that ended the diagnosis
        self._effort = effort
        self._compiler = compiler
        self._outcomes: dict[Changes, Outcome] = {}
        self._benches: dict[Changes, _Bench] = {}
        self.begin()

    @property
    def inventory(self) -> Inventory:
        """The inventory of the situation as it is."""
        bench = self._bench(NO_CHANGES)
        bench.free(())
        return bench.inventory

    def begin(self) -> None:
        """Begin another part of the diagnosis, which has all its trials before it."""
        self._trials_left = self._effort.trials_max
        self._steps_left = self._effort.steps_max

    def outcome(self, changes: Collection[Change] = ()) -> Outcome:
        """Return what the allocator says to the situation with the changes."""
        key = frozenset(changes)
        found = self._outcomes.get(key)
        if found is None:
            found = self._tried(key)
            if found is not SPENT:
                self._outcomes[key] = found
        return found

    def is_possible(self, changes: Collection[Change] = ()) -> bool | None:
        """Return whether all claims can be allocated then; None if that took too long."""
        kind = self.outcome(changes).kind
        return None if kind is Kind.GIVEN_UP else kind is Kind.POSSIBLE

    def drivers(self, changes: Collection[Change]) -> frozenset[str]:
        """Return the drivers of the devices that the claims would get with the changes."""
        effort = self._effort
        budget = Budget(steps=effort.steps_each_max, interrupt=effort.interrupt)
        answer = self._asked(frozenset(changes), budget)
        if not isinstance(answer, Allocated):
            return frozenset()
        results = answer.results(lambda: "")  # which share it is does not matter
        return frozenset(each.driver for one in results for each in one.devices.results)

    def _tried(self, changes: Changes) -> Outcome:
        effort = self._effort
        if self._is_ended() or self._trials_left <= 0 or self._steps_left <= 0:
            self.given_up += 1
            return ENDED if self.ended_by else SPENT
        self.count += 1
        self._trials_left -= 1
        steps = min(effort.steps_each_max, self._steps_left)
        answer = self._asked(changes, Budget(steps=steps, interrupt=effort.interrupt))
        outcome = _outcome_of(answer)
        self._steps_left -= answer.steps
        if outcome.kind is Kind.GIVEN_UP:
            self.given_up += 1
            self._steps_left -= steps
            return ENDED if self._is_ended() else outcome
        return outcome

    def _is_ended(self) -> bool:
        """Ask the interrupt, once it has spoken no more."""
        if self._effort.interrupt is not None and not self.ended_by:
            self.ended_by = self._effort.interrupt() or ""
        return bool(self.ended_by)

    def _asked(self, changes: Changes, budget: Budget) -> Answer:
        bench = self._bench(changes)
        bench.free({(c.namespace, c.name) for c in changes if isinstance(c, FreeClaim)})
        claims = changed_claims(self.situation, changes)
        classes = {c.metadata.name: c for c in changed_classes(self.situation, changes)}
        plan = plan_of(claims, features=bench.inventory.features, classes=classes.get)
        wanted = Wanted(claims, [claim_name(claim) for claim in claims], plan)
        return allocate_wanted(bench.inventory, self.situation.node, wanted, budget=budget)

    def _bench(self, changes: Changes) -> _Bench:
        """Return a bench on which the features and slices are as changed."""
        key = frozenset(c for c in changes if isinstance(c, SwitchFeature | PublishList))
        bench = self._benches.get(key)
        if bench is None:
            bench = self._benches[key] = _Bench(applied(self.situation, key), self._compiler)
        return bench


def _outcome_of(answer: Answer) -> Outcome:
    match answer:
        case Allocated():
            return Outcome(Kind.POSSIBLE)
        case Failed(is_given_up=True):
            return Outcome(Kind.GIVEN_UP, answer.message, answer.node_only)
        case Failed():
            return Outcome(Kind.FAULTY, answer.message, answer.node_only)
        case _:
            return Outcome(Kind.UNSATISFIED, node_only=True)


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
