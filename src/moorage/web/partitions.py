"""Partitions: devices that consume a part of what a whole device of their pool consumes.

Slices do not say which device is the whole one. It is the device that consumes at least as much of
every counter as all others that consume from the same counter set, if there is exactly one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from moorage.allocator.rules.consumption import CounterKey, amounts_of
from moorage.api.tolerations import DeviceName
from moorage.insight.devices import DeviceState, DeviceUsage
from moorage.kit.checkpoints import checkpoint

Amounts = Counter[CounterKey]  # in units of 1e-9
_ONE = 10**9
_HELD = (DeviceState.TAKEN, DeviceState.SHARED)


class Partition(NamedTuple):
    """The whole device of a partition, and how much a whole device's parts use, in thousandths."""

    of: DeviceName | None = None
    used: int = 0


def partitions_of(usages: Iterable[DeviceUsage]) -> dict[DeviceName, Partition]:
    """Return the partitions and the whole devices of some pools."""
    by_set: dict[tuple[str, str, str], list[DeviceUsage]] = {}
    for usage in usages:
        checkpoint()
        for name in {each.counter_set for each in usage.device.consumes_counters}:
            by_set.setdefault((usage.id.driver, usage.id.pool, name), []).append(usage)
    found: dict[DeviceName, Partition] = {}
    for together in by_set.values():
        checkpoint()
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
    """Return the used share of the counter that is used most, in thousandths.

    The first partition uses up any counter of 1, such as that of one memory slice of a GPU. Such
    counters do not show how much is left, so they count only if there are no others.
    """
    used: Amounts = Counter()
    for amounts in taken:
        used.update(amounts)
    shares = {key: min(used[key], whole[key]) * 1000 // whole[key] for key in +whole}
    divisible = [share for key, share in shares.items() if whole[key] > _ONE]
    return max(divisible or shares.values(), default=0)
