"""Consumable capacity: how much a request consumes of each capacity of a device.

A request consumes of every capacity of a device: the requested amount, rounded up as the device's
policy says; otherwise the policy's default, or all of it. A device is not suitable if it lacks a
requested capacity, or if the policy does not allow the amount. An amount that cannot be counted is
an error.

This applies to dedicated devices too: there the request only filters, and the claim gets the whole
device. Only devices with allowMultipleAllocations (`PoolFacts.shareable`) get a shareID and
consumedCapacity, in `allocation`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from operator import attrgetter

from moorage.allocator.errors import CapacityError
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)

_policy = attrgetter("request_policy")
_amount = attrgetter("value")

INT64_MAX = 2**63 - 1

UNCOUNTABLE = "capacity request cannot be represented in the device's range arithmetic"
NEGATIVE = "capacity value is negative"


def consumed_capacity(
    requests: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity], *, fractional: bool
) -> dict[str, Quantity] | None:
    """Return how much a request consumes of each capacity; None if the device is not suitable.

    Raise CapacityError for an amount that cannot be counted, even if another does not fit.
    """
    if any(name not in capacity for name in requests):
        return None
    consumed: dict[str, Quantity] = {}
    for name in sorted(capacity):
        try:
            amount = _consumed(requests.get(name), capacity[name], fractional=fractional)
            if amount.sign < 0:
                raise CapacityError(NEGATIVE)
        except CapacityError as fault:
            raise CapacityError(f'capacity "{name}": {fault}') from None
        consumed[name] = amount
    for name, amount in consumed.items():
        if _violates(amount, capacity[name].request_policy, fractional=fractional):
            return None
        if amount > capacity[name].value:
            return None
    return consumed


def are_plain(capacities: Iterable[Mapping[str, DeviceCapacity]]) -> bool:
    """Return whether a request for no particular amount fits: it takes all that devices have."""
    entries = [each for capacity in capacities for each in capacity.values()]
    if any(map(_policy, entries)):
        return False
    amounts = list(map(_amount, entries))
    # Quantities of the same text are mostly one object.
    distinct = dict(zip(map(id, amounts), amounts, strict=True)).values()
    return all(amount.sign >= 0 for amount in distinct)


def content_key(capacity: Mapping[str, DeviceCapacity]) -> Hashable:
    """Return a key that devices share only if their capacities are the same, while they exist.

    Quantities of the same text are mostly one object.
    """
    key: list[Hashable] = []
    for name, each in capacity.items():
        key += (name, id(each.value))
        policy = each.request_policy
        if policy is not None:
            valid = policy.valid_range
            key += (id(policy.default), *map(id, policy.valid_values))
            if valid is not None:
                key += ("range", id(valid.min), id(valid.max), id(valid.step))
    return tuple(key)


def _consumed(
    requested: Quantity | None, capacity: DeviceCapacity, *, fractional: bool
) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, fractional=fractional)
    return next((value for value in policy.valid_values if requested <= value), requested)


def _rounded_up(
    requested: Quantity, valid: CapacityRequestPolicyRange, *, fractional: bool
) -> Quantity:
    """Return the amount brought up to the minimum, then to the next step."""
    assert valid.min is not None
    if requested < valid.min:
        return valid.min
    if valid.step is None:
        return requested
    if fractional and _is_countable_in_milli(valid):
        return _rounded_up_milli(requested, valid.min, valid.step)
    if requested > Quantity.from_int(INT64_MAX):
        raise CapacityError(f"{UNCOUNTABLE}: request {requested} exceeds MaxInt64")
    step, least = valid.step.value, valid.min.value
    steps = _steps(requested.value - least, step)
    if least >= 0 and steps > _truncated(INT64_MAX - least, step):
        detail = f"rounding request {requested} up to the next step passes MaxInt64"
        raise CapacityError(f"{UNCOUNTABLE}: {detail}")
    return Quantity.from_int(least + step * steps, valid.step.format)


def _rounded_up_milli(requested: Quantity, least: Quantity, step: Quantity) -> Quantity:
    milli = _exact_milli(requested)
    if milli is None:
        detail = f"request {requested} is not a representable milli value"
        raise CapacityError(f"{UNCOUNTABLE}: {detail}")
    steps = _steps(milli - least.milli_value, step.milli_value)
    if steps > _truncated(INT64_MAX - least.milli_value, step.milli_value):
        detail = f"rounding request {requested} up to the next step passes the milli-value range"
        raise CapacityError(f"{UNCOUNTABLE}: {detail}")
    total = least.milli_value + step.milli_value * steps
    if total % 1000 == 0:
        return Quantity.from_int(total // 1000, step.format)
    return Quantity.from_milli(total, step.format)


def _steps(distance: int, step: int) -> int:
    """Return how many steps cover the distance."""
    if step == 0:
        raise CapacityError(f"{UNCOUNTABLE}: the step is zero")
    steps = _truncated(distance, step)
    return steps + 1 if distance != steps * step else steps


def _truncated(dividend: int, divisor: int) -> int:
    """Return the quotient rounded towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _is_countable_in_milli(valid: CapacityRequestPolicyRange) -> bool:
    """Return whether all bounds are whole thousandths, and the step is at least one."""
    for bound in (valid.min, valid.max, valid.step):
        if bound is not None and _exact_milli(bound) is None:
            return False
    return valid.step is None or valid.step.milli_value >= 1


def _exact_milli(quantity: Quantity) -> int | None:
    """Return the amount in thousandths if it is a whole number of them and an int64."""
    milli = quantity.milli_value
    return milli if milli * 10**6 == quantity.nano else None


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None, *, fractional: bool) -> bool:
    """Return whether the policy does not allow the amount; its default is always allowed."""
    if policy is None:
        return False
    if policy.default is not None and _is_same(amount, policy.default):
        return False
    if policy.valid_range is not None:
        return _is_off_range(amount, policy.valid_range, fractional=fractional)
    return bool(policy.valid_values) and all(amount != value for value in policy.valid_values)


def _is_same(amount: Quantity, default: Quantity) -> bool:
    """Return whether two quantities are the same in number and notation."""
    return amount == default and amount.format == default.format


def _is_off_range(amount: Quantity, valid: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if valid.max is not None and amount > valid.max:
        return True
    if valid.step is None:
        return False
    least = valid.min or Quantity.ZERO
    if fractional and _is_countable_in_milli(valid):
        milli = _exact_milli(amount)
        return milli is None or (milli - least.milli_value) % valid.step.milli_value != 0
    step = valid.step.value
    return step == 0 or (amount.value - least.value) % step != 0
