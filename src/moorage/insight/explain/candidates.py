"""Candidates for fixes: every single change that might help, the least invasive kinds first.

Changes to the claims come before changes that affect others: tolerations, constraints, counts,
selectors; then other claims; then the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from moorage.allocator.requests import RESULTS_MAX
from moorage.api.quantity import Format, Quantity
from moorage.api.resource.v1 import DeviceCapacity, DeviceConstraint, DeviceTaint, DeviceToleration
from moorage.api.tolerations import tolerates
from moorage.insight.explain.conflict import Obstacles, features_that_matter
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
    SwitchFeature,
    Tolerate,
    removals,
)
from moorage.insight.explain.trials import attribute_names

VALUES_MAX = 8  # of an attribute, to combine into a list
AMOUNTS_MAX = 8  # of a capacity, to try instead

# How invasive a change is; lower ranks are offered first.
_RANKS: dict[type, int] = {
    Tolerate: 1,
    DropConstraint: 2,
    LowerCount: 3,
    PublishList: 4,
    AskCapacity: 5,
    DropSelector: 6,
    DropAlternative: 7,
    FreeClaim: 8,
    DropRequest: 9,
    SwitchFeature: 10,
    DropClassSelector: 11,
}


def rank(change: SituationChange) -> int:
    """Return how invasive a change is."""
    return _RANKS[type(change)]


def candidates(situation: Situation, obstacles: Obstacles) -> list[SituationChange]:
    """Return the single changes that might help, in the order in which to try them.

    Of a count only the lowest, one, is here, and of attributes and amounts nothing: simpler changes
    show whether these help.
    """
    requests, parts = situation.requests(), removals(situation)
    found: list[SituationChange] = [*_tolerations(situation, obstacles), *parts.constraints]
    found += (
        LowerCount(path, 1)
        for path, details in requests
        if details.allocation_mode == "ExactCount" and details.count > 1
    )
    found += (*parts.capacities, *parts.selectors)
    found += (DropAlternative(path) for path, _ in requests if _has_others(situation, path))
    found += (FreeClaim(*key) for key in obstacles.holders)
    found += parts.requests
    for feature in features_that_matter(situation):
        found.append(SwitchFeature(feature, not getattr(situation.features, feature)))
    used = {details.device_class_name for _, details in requests}
    for each in situation.classes:
        if each.metadata.name in used:
            name, selectors = each.metadata.name, each.spec.selectors
            found += (DropClassSelector(name, number) for number in range(len(selectors)))
    return found


def _has_others(situation: Situation, place: RequestPath) -> bool:
    if place.alternative is None:
        return False
    request = (situation.claims[place.claim].spec.devices.requests or ())[place.request]
    return len(request.first_available) > 1


def _tolerations(situation: Situation, obstacles: Obstacles) -> Iterator[Tolerate]:
    """Yield tolerations from narrow to wide: one taint in one request, …, everything in all."""
    taints = [
        DeviceTaint(key=key, value=value, effect=effect) for key, value, effect in obstacles.taints
    ]
    if not taints:
        return
    requests = situation.requests()
    for narrow in (True, False):
        for place, details in requests:
            for toleration in _for_taints(taints, details.tolerations, narrow=narrow):
                yield Tolerate(toleration, place)
    if len(requests) > 1:
        for narrow in (True, False):
            for toleration in _for_taints(taints, (), narrow=narrow):
                yield Tolerate(toleration)
    if len(taints) > 1:
        everything = DeviceToleration(operator="Exists")
        for place, _ in requests:
            yield Tolerate(everything, place)
        yield Tolerate(everything)


def _for_taints(
    taints: list[DeviceTaint], known: tuple[DeviceToleration, ...], *, narrow: bool
) -> list[DeviceToleration]:
    """Return a toleration for each untolerated taint, or for each key that several share."""
    missing = [t for t in taints if not any(tolerates(toleration, t) for toleration in known)]
    if narrow:
        return [
            DeviceToleration(key=t.key, operator="Equal", value=t.value, effect=t.effect)
            for t in missing
        ]
    keys = [taint.key for taint in missing]
    # For a key with one taint the narrow toleration does as well.
    wide = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    return [DeviceToleration(key=key, operator="Exists") for key in wide]


def counts_below(details: Details) -> int:
    """Return the largest smaller count that may be tried."""
    return min(details.count - 1, RESULTS_MAX)


def smaller_amounts(situation: Situation, change: AskCapacity) -> list[AskCapacity]:
    """Return smaller amounts of a capacity to request instead, the largest first."""
    details = situation.details(change.place)
    assert details.capacity is not None
    wanted = details.capacity.requests[change.name]
    consumed = _consumed(situation)
    amounts: set[Quantity] = set()
    for slice_ in situation.slices:
        spec = slice_.spec
        for device in spec.devices or ():
            for name in attribute_names(change.name, spec.driver):
                if name in device.capacity:
                    taken = consumed.get((spec.driver, spec.pool.name, device.name, name))
                    amounts.update(_amounts(device.capacity[name], taken))
    smaller = (amount for amount in amounts if Quantity.ZERO < amount < wanted)
    largest = sorted(smaller, reverse=True)[:AMOUNTS_MAX]
    return [AskCapacity(change.place, change.name, amount) for amount in largest]


def _amounts(capacity: DeviceCapacity, taken: Quantity | None) -> Iterator[Quantity]:
    """Yield the total of a capacity, the remaining amount, and the amounts its policy allows."""
    left = capacity.value if taken is None else capacity.value - taken
    yield capacity.value
    yield left
    policy = capacity.request_policy
    if policy is not None:
        between = policy.valid_range
        if between is not None and between.step is not None and between.step.value > 0:
            start = 0 if between.min is None else between.min.value
            steps = (left.value - start) // between.step.value
            yield Quantity.from_int(start + steps * between.step.value, Format.BINARY_SI)
        yield from policy.valid_values
        if policy.valid_range is not None and policy.valid_range.max is not None:
            yield policy.valid_range.max


def _consumed(situation: Situation) -> dict[tuple[str, str, str, str], Quantity]:
    """Return how much claims consume of the capacities of shared devices."""
    found: dict[tuple[str, str, str, str], Quantity] = {}
    for claim in situation.allocated:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            for name, amount in (result.consumed_capacity or {}).items():
                key = (result.driver, result.pool, result.device, name)
                found[key] = found.get(key, Quantity.ZERO) + amount
    return found


def lists_for(
    situation: Situation, constraint: DeviceConstraint, drivers: Collection[str]
) -> list[PublishList]:
    """Return lists that drivers might publish so that more devices match.

    Short ones come first, and those of drivers whose devices have few values of their own.
    """
    attribute = constraint.match_attribute
    if attribute is None or not situation.features.list_type_attributes:
        return []
    scalars, numbers = _published_values(situation, attribute, drivers)
    some = sorted(numbers)[:VALUES_MAX]
    found: list[tuple[int, int, PublishList]] = []
    for driver, own in sorted(scalars.items()):
        for size in range(2, len(some) + 1):
            rows = (tuple(some[first : first + size]) for first in range(len(some) - size + 1))
            useful = (row for row in rows if not own.isdisjoint(row))  # others change nothing
            found += ((size, len(own), PublishList(driver, attribute, row)) for row in useful)
    return [change for _, _, change in sorted(found, key=lambda each: each[:2])]


def _published_values(
    situation: Situation, attribute: str, drivers: Collection[str]
) -> tuple[dict[str, set[int]], set[int]]:
    """Return the scalar values of each driver, and all published values."""
    scalars: dict[str, set[int]] = {}
    numbers: set[int] = set()
    for slice_ in situation.slices:
        driver = slice_.spec.driver
        if driver not in drivers:
            continue
        for device in slice_.spec.devices or ():
            for name in attribute_names(attribute, driver):
                value = device.attributes.get(name)
                if value is None:
                    continue
                if value.int_value is not None:
                    scalars.setdefault(driver, set()).add(value.int_value)
                    numbers.add(value.int_value)
                numbers.update(value.int_values or ())
    return scalars, numbers
