"""What is left to be filled from a stage on, whatever was picked before: like slots put together.

# group: like slots that are still to be filled, with all the devices that they may get
# horizon: the stages up to the first one that may raise a fault; nothing beyond it is looked at
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mooring.allocator.bits import mask_of
from mooring.allocator.problem import Problem, Slot


class Group(NamedTuple):
    """Like slots that are still to be filled."""

    slot: Slot  # one of them
    need: int  # devices wanted by all of them
    domain: int  # from where they may be taken
    repeats: bool  # whether a device that can be shared may be taken again


class Fork(NamedTuple):
    """Alternatives, one of which is to be filled."""

    groups: tuple[Group, ...]


class Rest(NamedTuple):
    """What is to be filled up to the horizon, and what is there.

    A request at the horizon that cannot be served whatever was picked ends the search only if one
    of the devices that it cannot judge is free. Then only ways that leave one of them free matter.
    """

    groups: tuple[Group, ...]
    forks: tuple[Fork, ...]
    unjudged: int | None  # these devices; None: what is at the horizon may be served


class Remains:
    """What is left, by stage; worked out once for each."""

    def __init__(self, problem: Problem, like: Mapping[Slot, int]) -> None:
        self._problem = problem
        self._like = like  # slots with the same number are alike
        self._shareable = problem.view.shareable
        self._rest: dict[tuple[int, Slot | None], Rest] = {}

    def after(self, stage: int, chosen: Slot | None = None) -> Rest:
        """Return what is to be filled from a stage on; there with the slot that was chosen."""
        found = self._rest.get((stage, chosen))
        if found is None:
            found = self._rest[stage, chosen] = self._gather(stage, chosen)
        return found

    def _gather(self, stage: int, chosen: Slot | None) -> Rest:
        alike: dict[object, Group] = {}
        forks: list[Fork] = []
        stages = self._problem.stages[stage:]
        if chosen is not None:
            stages = ((chosen,), *stages[1:])
        unjudged: int | None = None
        for slots in stages:
            if any(slot.is_risky for slot in slots):
                if len(slots) == 1 and _cannot_be_served(slots[0]):
                    unjudged = mask_of(slots[0].faults) & ~self._problem.taken.whole
                break  # the horizon
            groups = [_whole_group(slot) for slot in slots]
            if len(groups) > 1:
                forks.append(Fork(tuple(groups)))
            else:
                self._join(groups[0], alike)
        return Rest(tuple(alike.values()), tuple(forks), unjudged)

    def _join(self, group: Group, alike: dict[object, Group]) -> None:
        """Put a group to those that are like it."""
        ask = group.slot.ask
        can_repeat = bool(group.domain & self._shareable)
        if ask.is_admin or group.slot.listed is not None or (can_repeat and group.need > 1):
            alike[object()] = group
            return
        key = self._like[group.slot]
        before = alike.get(key)
        need = group.need + (before.need if before is not None else 0)
        alike[key] = group._replace(need=need, repeats=can_repeat)


def _cannot_be_served(slot: Slot) -> bool:
    """Return whether a slot has too few candidates from the start, and only static faults."""
    return (
        slot.listed is None
        and not slot.ask.is_admin
        and slot.candidates.bit_count() < slot.count
        and not any(rule.is_constraint for rule in slot.unsure)
    )


def _whole_group(slot: Slot) -> Group:
    if slot.listed is not None:
        # All that are meant are wanted; one that cannot be used leaves too few.
        need = max(slot.count, 1)
        return Group(slot, need, slot.candidates & mask_of(slot.listed), repeats=False)
    return Group(slot, slot.count, slot.candidates, repeats=False)
