"""Devices that are interchangeable: a search need not try one where another like it has failed.

    # alike: two devices that every slot admits or does not, that no rule tells apart, and of which
    #     each has one user

Say the search gives device p to a slot, and finds no completion. Would p', alike and later in the
order, do in its place? A completion with p' gives the slot later devices only, so p is free in it;
with p and p' exchanged it is one that has p there, and the search would have found it. So p' need
not be tried. This holds while no search of the problem can end with an error, since which device an
error is about depends on the order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from moorage.allocator.pools import bits
from moorage.allocator.rules.constraints import AttributeTable, Constraint

if TYPE_CHECKING:
    from moorage.allocator.problem import Problem

NONE_ALIKE: Mapping[int, int] = {}


def alike_devices(problem: Problem) -> Mapping[int, int]:
    """Return by position the devices that are alike, itself included; of most there may be none."""
    slots = [slot for stage in problem.stages for slot in stage]
    if problem.is_near_limit or any(slot.is_risky or slot.is_lazy for slot in slots):
        return NONE_ALIKE
    rules = [rule for rule in problem.rules if isinstance(rule, Constraint)]
    tables = {id(table): table for rule in rules for table in rule.tables.values()}
    amounts = problem.consumption
    scarce = _scarce_counters(problem)
    admitted = {slot.candidates for slot in slots}
    candidates = 0
    for each in admitted:
        candidates |= each
    masks: dict[Hashable, int] = {}
    keys: dict[int, Hashable] = {}
    # What is left of a device that can be shared depends on who has it.
    for position in bits(candidates & ~problem.view.shareable):
        if amounts is not None and position in amounts.capacity:
            continue
        key = keys[position] = _key(problem, position, admitted, tables.values(), scarce)
        masks[key] = masks.get(key, 0) | 1 << position
    return {position: masks[key] for position, key in keys.items()}


def _key(
    problem: Problem,
    position: int,
    admitted: Iterable[int],
    tables: Iterable[AttributeTable],
    scarce: Mapping[int, int],
) -> Hashable:
    """Return all that the rules know of a device."""
    amounts, compatibility = problem.consumption, problem.compatibility
    account, take = (-1, 0) if amounts is None else amounts.counters.get(position, (-1, 0))
    return (
        tuple([devices >> position & 1 for devices in admitted]),
        tuple([table.elements.get(position) for table in tables]),
        account,
        take & scarce.get(account, -1),
        None if compatibility is None else tuple(compatibility.groups.get(position, ())),
    )


def _scarce_counters(problem: Problem) -> dict[int, int]:
    """Return by account the fields of the counters that could be overdrawn, whatever is picked.

    If all devices together take no more of a counter than is left, it makes no difference.
    """
    amounts = problem.consumption
    found: dict[int, int] = {}
    if amounts is None:
        return found
    account = 0
    for facts in problem.view.pools:
        counters = facts.counters
        if counters is None:
            continue
        left = amounts.left[account]
        if left is not None and not counters.can_grow:
            width = counters.layout.width
            field = (1 << width) - 1
            found[account] = 0
            for shift in range(0, len(counters.layout.fields) * width, width):
                wanted = sum([take >> shift & field for take in counters.takes.values()])
                if wanted > left >> shift & field:
                    found[account] |= field << shift
        account += 1
    return found
