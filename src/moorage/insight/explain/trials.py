"""Trials: the allocator's result for a situation with changes, cached and bounded.

Most changes concern the claims to be allocated. They are tried on one inventory, whose cached
results of expressions stay valid; claims are freed in its ledger and put back. A changed feature or
slice needs an inventory of its own. The caller's inventory is never touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from moorage.allocator import (
    Allocated,
    AllocationFailed,
    AllocationOutcome,
    Inventory,
    allocate_prepared,
)
from moorage.allocator.allocation import Budget, Interrupt, PreparedClaims
from moorage.allocator.ledger import ClaimKey
from moorage.allocator.requests import claim_name, plan_of
from moorage.api.resource.v1 import (
    CapacityRequirements,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from moorage.cel.device import DeviceCompiler
from moorage.insight.explain.situation import (
    AskCapacity,
    Details,
    DropAlternative,
    DropClassSelector,
    DropConstraint,
    DropRequest,
    DropSelector,
    FreeClaim,
    LowerCount,
    PublishList,
    RequestPath,
    Situation,
    SituationChange,
    SituationChanges,
    SwitchFeature,
    Tolerate,
)

T = TypeVar("T")
D = TypeVar("D", bound=Details)


class Effort(NamedTuple):
    """How much each part of a diagnosis may take."""

    trials_max: int = 300
    steps_each_max: int = 2_000  # of a search, after its light part
    steps_max: int = 10_000  # of all searches together
    interrupt: Interrupt | None = None  # called now and then; a text ends the diagnosis


EFFORT = Effort()

NO_CHANGES: SituationChanges = frozenset()


class TrialKind(Enum):
    """The kind of a trial's outcome."""

    POSSIBLE = "possible"
    UNSATISFIED = "unsatisfied"
    FAULTY = "faulty"
    GIVEN_UP = "given up"


class TrialOutcome(NamedTuple):
    """The allocator's result of a trial, without the parts that use much memory."""

    kind: TrialKind
    message: str = ""  # of an error
    node_only: bool = False


SPENT = TrialOutcome(TrialKind.GIVEN_UP, "the diagnosis has taken all its steps")
ENDED = TrialOutcome(TrialKind.GIVEN_UP)  # by an interrupt, which `Trials.ended_by` has


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
        self.given_up = 0  # trials without a result
        self.ended_by = ""  # the interrupt that ended the diagnosis
        self._effort = effort
        self._compiler = compiler
        self._outcomes: dict[SituationChanges, TrialOutcome] = {}
        self._benches: dict[SituationChanges, _Bench] = {}
        self.begin()

    def __getstate__(self) -> dict[str, Any]:  # benches are made again when they are asked for
        return {**self.__dict__, "_benches": {}}

    @property
    def inventory(self) -> Inventory:
        """The inventory of the unchanged situation."""
        bench = self._bench(NO_CHANGES)
        bench.free(())
        return bench.inventory

    def begin(self, effort: Effort | None = None) -> None:
        """Begin another part of the diagnosis, with a full budget of trials."""
        self._effort = effort or self._effort
        self._trials_left = self._effort.trials_max
        self._steps_left = self._effort.steps_max

    def outcome(self, changes: Collection[SituationChange] = ()) -> TrialOutcome:
        """Return the allocator's result for the situation with the changes."""
        key = frozenset(changes)
        found = self._outcomes.get(key)
        if found is None:
            found = self._tried(key)
            if found is not SPENT:
                self._outcomes[key] = found
        return found

    def is_possible(self, changes: Collection[SituationChange] = ()) -> bool | None:
        """Return whether the changed claims can be allocated; None if that took too long."""
        kind = self.outcome(changes).kind
        return None if kind is TrialKind.GIVEN_UP else kind is TrialKind.POSSIBLE

    def drivers(self, changes: Collection[SituationChange]) -> frozenset[str]:
        """Return the drivers of the devices that the claims would get with the changes."""
        effort = self._effort
        budget = Budget(steps=effort.steps_each_max, interrupt=effort.interrupt)
        answer = self._allocate(frozenset(changes), budget)
        if not isinstance(answer, Allocated):
            return frozenset()
        results = answer.results(lambda: "")  # share ids do not matter
        return frozenset(each.driver for one in results for each in one.devices.results)

    def _tried(self, changes: SituationChanges) -> TrialOutcome:
        effort = self._effort
        if self._is_ended() or self._trials_left <= 0 or self._steps_left <= 0:
            self.given_up += 1
            return ENDED if self.ended_by else SPENT
        self.count += 1
        self._trials_left -= 1
        steps = min(effort.steps_each_max, self._steps_left)
        answer = self._allocate(changes, Budget(steps=steps, interrupt=effort.interrupt))
        outcome = _outcome_of(answer)
        self._steps_left -= answer.steps
        if outcome.kind is TrialKind.GIVEN_UP:
            self.given_up += 1
            self._steps_left -= steps
            return ENDED if self._is_ended() else outcome
        return outcome

    def _is_ended(self) -> bool:
        """Ask the interrupt until it has spoken once."""
        if self._effort.interrupt is not None and not self.ended_by:
            self.ended_by = self._effort.interrupt() or ""
        return bool(self.ended_by)

    def _allocate(self, changes: SituationChanges, budget: Budget) -> AllocationOutcome:
        bench = self._bench(changes)
        bench.free({(c.namespace, c.name) for c in changes if isinstance(c, FreeClaim)})
        claims = _changed_claims(self.situation, changes)
        classes = {c.metadata.name: c for c in _changed_classes(self.situation, changes)}
        plan = plan_of(claims, features=bench.inventory.features, classes=classes.get)
        wanted = PreparedClaims(claims, [claim_name(claim) for claim in claims], plan)
        return allocate_prepared(bench.inventory, self.situation.node, wanted, budget=budget)

    def _bench(self, changes: SituationChanges) -> _Bench:
        """Return the bench with the changed features and slices."""
        key = frozenset(c for c in changes if isinstance(c, SwitchFeature | PublishList))
        bench = self._benches.get(key)
        if bench is None:
            bench = self._benches[key] = _Bench(applied(self.situation, key), self._compiler)
        return bench


def _outcome_of(answer: AllocationOutcome) -> TrialOutcome:
    match answer:
        case Allocated():
            return TrialOutcome(TrialKind.POSSIBLE)
        case AllocationFailed(is_given_up=True):
            return TrialOutcome(TrialKind.GIVEN_UP, answer.message, answer.node_only)
        case AllocationFailed():
            return TrialOutcome(TrialKind.FAULTY, answer.message, answer.node_only)
        case _:
            return TrialOutcome(TrialKind.UNSATISFIED, node_only=True)


class _Bench:
    """An inventory for trials, and the claims that are freed in it for now."""

    def __init__(self, situation: Situation, compiler: DeviceCompiler | None) -> None:
        self.inventory = Inventory(situation.features, compiler=compiler)
        for number, slice_ in enumerate(situation.slices):
            self.inventory.put_slice(slice_, key=f"{slice_.metadata.name} {number}")
        for device_class in situation.classes:
            self.inventory.put_class(device_class)
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        for claim in situation.allocated:
            self.inventory.put_claim(claim)
            self._claims[claim.metadata.namespace, claim.metadata.name] = claim
        self._freed: set[ClaimKey] = set()

    def free(self, keys: Collection[ClaimKey]) -> None:
        """Free these claims and no others; claims without devices here have nothing to free."""
        freed = self._claims.keys() & keys
        for key in self._freed - freed:
            self.inventory.put_claim(self._claims[key])
        for key in freed - self._freed:
            self.inventory.remove_claim(*key)
        self._freed = freed


# --- changed situations -----------------------------------------------------------------


def applied(situation: Situation, changes: Collection[SituationChange]) -> Situation:
    """Return the situation with all the changes."""
    switched = {c.feature: c.is_on for c in changes if isinstance(c, SwitchFeature)}
    freed = {(c.namespace, c.name) for c in changes if isinstance(c, FreeClaim)}
    return replace(
        situation,
        features=situation.features._replace(**switched),
        classes=_changed_classes(situation, changes),
        slices=_changed_slices(situation, changes),
        allocated=tuple(
            claim
            for claim in situation.allocated
            if (claim.metadata.namespace, claim.metadata.name) not in freed
        ),
        claims=_changed_claims(situation, changes),
    )


# --- changed claims ---------------------------------------------------------------------


def _changed_claims(
    situation: Situation, changes: Collection[SituationChange]
) -> tuple[ResourceClaim, ...]:
    by_claim: dict[int, list[SituationChange]] = {}
    for change in changes:
        for number in _claims_of(change, situation):
            by_claim.setdefault(number, []).append(change)
    return tuple(
        _claim(number, claim, by_claim[number]) if number in by_claim else claim
        for number, claim in enumerate(situation.claims)
    )


def _claims_of(change: SituationChange, situation: Situation) -> Iterable[int]:
    match change:
        case DropRequest(claim=number) | DropConstraint(claim=number):
            return (number,)
        case Tolerate(place=None):
            return range(len(situation.claims))
        case DropAlternative() | DropSelector() | LowerCount() | AskCapacity() | Tolerate():
            assert change.place is not None
            return (change.place.claim,)
    return ()


def _claim(number: int, claim: ResourceClaim, changes: Sequence[SituationChange]) -> ResourceClaim:
    devices = claim.spec.devices
    requests = {c.request for c in changes if isinstance(c, DropRequest)}
    constraints = {c.constraint for c in changes if isinstance(c, DropConstraint)}
    edited = replace(
        devices,
        requests=tuple(
            _request(RequestPath(number, index), request, changes)
            for index, request in enumerate(devices.requests or ())
            if index not in requests
        ),
        constraints=_without(devices.constraints, constraints),
    )
    return replace(claim, spec=replace(claim.spec, devices=edited))


def _request(
    place: RequestPath, request: DeviceRequest, changes: Sequence[SituationChange]
) -> DeviceRequest:
    if not request.first_available:
        if request.exactly is None:
            return request
        return replace(request, exactly=_details(place, request.exactly, changes))
    dropped = {c.place for c in changes if isinstance(c, DropAlternative)}
    places = [replace(place, alternative=n) for n in range(len(request.first_available))]
    return replace(
        request,
        first_available=tuple(
            _details(where, details, changes)
            for where, details in zip(places, request.first_available, strict=True)
            if where not in dropped
        ),
    )


def _details(place: RequestPath, details: D, changes: Sequence[SituationChange]) -> D:
    selectors: set[int] = set()
    for change in changes:
        match change:
            case DropSelector(place=where, selector=number) if where == place:
                selectors.add(number)
            case LowerCount(place=where, count=count) if where == place:
                details = replace(details, count=count)
            case AskCapacity(place=where) if where == place:
                details = _ask_capacity(details, change)
            case Tolerate(place=where, toleration=toleration) if where in (None, place):
                details = replace(details, tolerations=(*details.tolerations, toleration))
    if selectors:
        details = replace(details, selectors=_without(details.selectors, selectors))
    return details


def _ask_capacity(details: D, change: AskCapacity) -> D:
    amounts = dict(details.capacity.requests) if details.capacity is not None else {}
    amounts.pop(change.name, None)
    if change.amount is not None:
        amounts[change.name] = change.amount
    return replace(details, capacity=CapacityRequirements(amounts) if amounts else None)


def _without(items: Sequence[T], numbers: Collection[int]) -> tuple[T, ...]:
    return tuple([item for number, item in enumerate(items) if number not in numbers])


# --- changed classes and slices ---------------------------------------------------------


def _changed_classes(
    situation: Situation, changes: Collection[SituationChange]
) -> tuple[DeviceClass, ...]:
    dropped: dict[str, set[int]] = {}
    for change in changes:
        if isinstance(change, DropClassSelector):
            dropped.setdefault(change.device_class, set()).add(change.selector)
    if not dropped:
        return situation.classes
    found: list[DeviceClass] = []
    for each in situation.classes:
        selectors = _without(each.spec.selectors, dropped.get(each.metadata.name, ()))
        found.append(replace(each, spec=replace(each.spec, selectors=selectors)))
    return tuple(found)


def _changed_slices(
    situation: Situation, changes: Collection[SituationChange]
) -> tuple[ResourceSlice, ...]:
    lists = [change for change in changes if isinstance(change, PublishList)]
    if not lists:
        return situation.slices
    return tuple(_slice(slice_, lists) for slice_ in situation.slices)


def _slice(slice_: ResourceSlice, lists: Iterable[PublishList]) -> ResourceSlice:
    for change in lists:
        if slice_.spec.driver == change.driver:
            devices = tuple(_device(device, change) for device in slice_.spec.devices or ())
            slice_ = replace(slice_, spec=replace(slice_.spec, devices=devices))
    return slice_


def _device(device: Device, change: PublishList) -> Device:
    attributes = dict(device.attributes)
    for name in attribute_names(change.attribute, change.driver):
        found = attributes.get(name)
        if found is not None:
            attributes[name] = _listed(found, change.values)
    return replace(device, attributes=attributes)


def attribute_names(attribute: str, driver: str) -> tuple[str, ...]:
    """Return the keys under which devices of a driver may publish a qualified attribute."""
    domain, _, short = attribute.partition("/")
    return (attribute, short) if domain == driver else (attribute,)


def _listed(attribute: DeviceAttribute, values: Sequence[int]) -> DeviceAttribute:
    """Return the attribute as a list, its own value first, if that is one of the values."""
    own = attribute.int_value
    if own is None or own not in values:
        return attribute
    return DeviceAttribute(int_values=(own, *[value for value in values if value != own]))
