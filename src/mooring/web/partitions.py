"""Partitions: devices that consume a part of what another device of their pool consumes whole.

Nothing in a slice says which device is the whole one. It is the one that consumes at least as much
of every counter as each of the others that consume from the same set, if there is one such device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mooring.allocator.rules.consumption import CounterKey, amounts_of
from mooring.api.tolerations import DeviceName
from mooring.insight.devices import DeviceState, DeviceUsage

Amounts = Counter[CounterKey]  # in nano
_ONE = 10**9
_HELD = (DeviceState.TAKEN, DeviceState.SHARED)


class Partition(NamedTuple):
    """What a device is a part of, and how much of it its own parts use, in thousandths."""

    of: DeviceName | None = None
    used: int = 0


def partitions_of(usages: Iterable[DeviceUsage]) -> dict[DeviceName, Partition]:
    """Return the partitions and the whole devices among the devices of some pools."""
    by_set: dict[tuple[str, str, str], list[DeviceUsage]] = {}
    for usage in usages:
        for name in {each.counter_set for each in usage.device.consumes_counters}:
            by_set.setdefault((usage.id.driver, usage.id.pool, name), []).append(usage)
    found: dict[DeviceName, Partition] = {}
    for together in by_set.values():
        for device, partition in _family(together):
            found.setdefault(device, partition)
    return found


def _family(together: Sequence[DeviceUsage]) -> Iterator[tuple[DeviceName, Partition]]:
    if len(together) < 2:
        return
    amounts = {usage.id: _amounts(usage) for usage in together}
    whole = max(together, key=lambda usage: amounts[usage.id].total())
    others = [usage for usage in together if usage.id != whole.id]
    # A partition may be as large as the device, but devices that are all alike are no partitions.
    if not all(amounts[each.id] <= amounts[whole.id] for each in others):
        return
    if all(amounts[each.id] == amounts[whole.id] for each in others):
        return
    taken = [amounts[each.id] for each in others if each.state in _HELD]
    yield whole.id, Partition(used=_used(taken, amounts[whole.id]))
    for each in others:
        yield each.id, Partition(of=whole.id)


def _amounts(usage: DeviceUsage) -> Amounts:
    found: Amounts = Counter()
    for key, amount in amounts_of(usage.device):
        found[key] += amount
    return found


def _used(taken: Iterable[Amounts], whole: Amounts) -> int:
    """Return the largest part of any counter that is used, in thousandths.

    A counter of one, such as one of the memory slices of a GPU, is used whole by the first
    partition: it says nothing of how much is left, unless there are no others.
    """
    used: Amounts = Counter()
    for amounts in taken:
        used.update(amounts)
    shares = {key: min(used[key], whole[key]) * 1000 // whole[key] for key in +whole}
    divisible = [share for key, share in shares.items() if whole[key] > _ONE]
    return max(divisible or shares.values(), default=0)
