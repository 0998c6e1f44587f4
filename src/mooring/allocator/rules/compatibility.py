"""Compatibility groups: devices on one counter set need a group that all of them are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.allocator.rules.base import Rule, States

if TYPE_CHECKING:
    from mooring.allocator.problem import Slot
    from mooring.allocator.view import View

SetKey = tuple[int, str]  # pool, counter set
Groups = frozenset[str]
NO_GROUPS: Groups = frozenset([""])  # as if such devices were a group of their own


class Compatibility(Rule):
    """Devices on one counter set need a group that all of them are in."""

    start: Mapping[SetKey, Groups] = {}

    def __init__(
        self,
        index: int,
        *,
        baseline: Mapping[SetKey, Groups],
        groups: Mapping[int, Sequence[tuple[SetKey, Groups]]],
        shared: int,
    ) -> None:
        self.index = index
        self.baseline = baseline
        self.groups = groups  # by position
        self.shared = shared

    def take(self, states: States, slot: Slot, position: int) -> Mapping[SetKey, Groups] | None:  # noqa: ARG002
        """Return the groups that all devices are in then; None if there would be none."""
        current: Mapping[SetKey, Groups] = states[self.index]
        joined = self.groups.get(position)
        if joined is None or (self.shared | states[0][1]) >> position & 1:
            return current
        changed = dict(current)
        for key, groups in joined:
            before = changed.get(key) or self.baseline.get(key)
            if before is not None:
                groups = before & groups
                if not groups:
                    return None
            changed[key] = groups
        return changed


def compatibility_rule(view: View) -> Compatibility | None:
    """Return the rule for compatibility groups; None if no device has any."""
    taken = view.taken
    baseline: dict[SetKey, Groups] = {}
    groups: dict[int, list[tuple[SetKey, Groups]]] = {}
    for number, (facts, offset) in enumerate(zip(view.pools, view.offsets, strict=True)):
        if not facts.has_groups:
            continue
        for device in taken.devices[number]:
            for consumption in device.consumes_counters:
                key = (number, consumption.counter_set)
                joining = frozenset(consumption.compatibility_groups) or NO_GROUPS
                baseline[key] = _joined(baseline.get(key), joining)
        for position, spot in enumerate(facts.pool.spots, offset):
            if spot.device.consumes_counters:
                groups[position] = [
                    (
                        (number, consumption.counter_set),
                        frozenset(consumption.compatibility_groups) or NO_GROUPS,
                    )
                    for consumption in spot.device.consumes_counters
                ]
    if not groups:
        return None
    shared = taken.shared & view.shareable
    return Compatibility(2, baseline=baseline, groups=groups, shared=shared)


def _joined(before: Groups | None, joining: Groups) -> Groups:
    """Return the groups of allocated devices; what contradicts itself stays as it was."""
    if before is None:
        return joining
    if NO_GROUPS in (before, joining):
        return before
    return before & joining
