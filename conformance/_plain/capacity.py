"""How much a request consumes of a device's capacity, and whether that much is left."""

from __future__ import annotations

from collections.abc import Iterable

from conformance._plain.model import Amounts, Failure
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    Device,
    DeviceCapacity,
)

INT64_MAX = 2**63 - 1
NOT_REPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


def consumption(
    wanted: CapacityRequirements | None, device: Device, *, fractional: bool
) -> Amounts:
    """Return how much a share consumes of each capacity of the device, or raise Failure."""
    requests = wanted.requests if wanted is not None else {}
    consumed = {}
    for name, capacity in sorted(device.capacity.items()):
        try:
            amount = _consumed(requests.get(name), capacity, fractional=fractional)
        except Failure as failure:
            raise Failure(f'capacity "{name}": {failure}') from None
        if amount.sign < 0:
            raise Failure(f'capacity "{name}": capacity value is negative')
        consumed[name] = amount
    return consumed


def fits(
    wanted: CapacityRequirements | None,
    device: Device,
    *,
    taken: Iterable[Amounts],
    fractional: bool,
) -> bool:
    """Return whether the device has the wanted amounts, besides those taken already."""
    if wanted is not None and not wanted.requests.keys() <= device.capacity.keys():
        return False
    consumed = consumption(wanted, device, fractional=fractional)
    shares = list(taken)
    for name, capacity in device.capacity.items():
        if not _is_allowed(consumed[name], capacity.request_policy, fractional=fractional):
            return False
        total = consumed[name]
        for share in shares:
            total += share.get(name, Quantity.ZERO)
        if total > capacity.value:
            return False
    return True


def _consumed(asked: Quantity | None, capacity: DeviceCapacity, *, fractional: bool) -> Quantity:
    """Return the amount asked for, rounded up by the policy."""
    policy = capacity.request_policy
    if asked is None:
        return policy.default if policy and policy.default is not None else capacity.value
    if policy is None:
        return asked
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded(asked, policy.valid_range, fractional=fractional)
    return next((value for value in policy.valid_values if asked <= value), asked)


def _rounded(asked: Quantity, range_: CapacityRequestPolicyRange, *, fractional: bool) -> Quantity:
    """Return the least amount of the range that is not below the requested one."""
    assert range_.min is not None
    if asked < range_.min:
        return range_.min
    if range_.step is None:
        return asked
    notation = range_.step.format
    if _counts_thousandths(range_, fractional=fractional):
        thousandths = _milli(asked)
        if thousandths is None:
            text = f"request {asked} is not a representable milli value"
            raise Failure(f"{NOT_REPRESENTABLE}: {text}")
        step, least = range_.step.milli_value, range_.min.milli_value
        total = _stepped(thousandths, least, step, asked, "the milli-value range")
        if total % 1000:
            return Quantity.from_milli(total, notation)
        return Quantity.from_int(total // 1000, notation)
    if asked > Quantity.from_int(INT64_MAX):
        raise Failure(f"{NOT_REPRESENTABLE}: request {asked} exceeds MaxInt64")
    total = _stepped(asked.value, range_.min.value, range_.step.value, asked, "MaxInt64")
    return Quantity.from_int(total, notation)


def _stepped(amount: int, least: int, step: int, asked: Quantity, limit: str) -> int:
    steps = -((least - amount) // step)
    if steps > (INT64_MAX - least) // step:
        text = f"rounding request {asked} up to the next step passes {limit}"
        raise Failure(f"{NOT_REPRESENTABLE}: {text}")
    return least + step * steps


def _is_allowed(
    amount: Quantity, policy: CapacityRequestPolicy | None, *, fractional: bool
) -> bool:
    if policy is None or (policy.default is not None and str(policy.default) == str(amount)):
        return True  # The default is allowed whatever the rest of the policy says.
    if policy.valid_range is not None:
        return _is_in_range(amount, policy.valid_range, fractional=fractional)
    return not policy.valid_values or amount in policy.valid_values


def _is_in_range(amount: Quantity, range_: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if range_.max is not None and amount > range_.max:
        return False
    if range_.step is None:
        return True
    assert range_.min is not None
    if _counts_thousandths(range_, fractional=fractional):
        thousandths = _milli(amount)
        if thousandths is None:
            return False
        return (thousandths - range_.min.milli_value) % range_.step.milli_value == 0
    return (amount.value - range_.min.value) % range_.step.value == 0


def _counts_thousandths(range_: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    """Return whether the range is one of thousandths, and not one of whole numbers."""
    bounds = [bound for bound in (range_.min, range_.max, range_.step) if bound is not None]
    if not fractional or any(_milli(bound) is None for bound in bounds):
        return False
    return range_.step is None or range_.step.milli_value >= 1


def _milli(amount: Quantity) -> int | None:
    """Return the amount in thousandths, if that is exact and an int64."""
    thousandths = amount.milli_value
    return thousandths if Quantity.from_milli(thousandths) == amount else None
