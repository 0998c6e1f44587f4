"""Counters of a pool and capacities of a device: no more is taken than there is.

Each is an account: a packed number with a guard bit above each of its fields, so that a step is one
subtraction. A device that can be shared pays for its counters once, with its first share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from mooring.allocator.bits import bits
from mooring.allocator.rules.base import Picks, Rule, States
from mooring.api.quantity import Quantity

if TYPE_CHECKING:
    from mooring.allocator.asks import Wish
    from mooring.allocator.problem import Slot
    from mooring.allocator.view import View


class Field(NamedTuple):
    """Where one amount is in its account, and what one of it is worth, in nano."""

    account: int
    shift: int
    mask: int
    unit: int = 1


class Amounts(Rule):
    """What is left of the accounts. State: those that were charged, with what is left of them."""

    start: Mapping[int, int] = {}

    def __init__(
        self,
        index: int,
        *,
        left: Sequence[int | None],
        guards: Sequence[int],
        counters: Mapping[int, tuple[int, int]],
        capacity: Mapping[int, int],
        fixed: Set[int],
        shared: int,
    ) -> None:
        self.index = index
        self.fixed = fixed  # accounts that are looked at but not charged
        self.left = left  # by account; None: more is taken than there is
        self.guards = guards
        self.counters = counters  # by position: account and what the device takes of it
        self.capacity = capacity  # by position: account
        self.shared = shared  # devices with shares, whose counters are paid for

    def charges(self, picks: Picks, slot: Slot, position: int) -> list[tuple[int, int]]:
        """Return what a pick takes of which accounts."""
        charges = []
        counters = self.counters.get(position)
        if counters is not None and not (self.shared | picks[1]) >> position & 1:
            charges.append(counters)
        account = self.capacity.get(position)
        if account is not None:
            charges.append((account, slot.takes[position]))
        return charges

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:
        """Return what is left then of the accounts that were charged; None if too little."""
        taken: Mapping[int, int] = states[self.index]
        changed: dict[int, int] | None = None
        for account, amount in self.charges(states[0], slot, position):
            left = taken.get(account)
            if left is None:
                left = self.left[account]
                if left is None:
                    return None
            guards = self.guards[account]
            rest = (left | guards) - amount
            if rest & guards != guards:
                return None
            if account in self.fixed:
                continue
            if changed is None:
                changed = dict(taken)
            changed[account] = rest ^ guards
        return taken if changed is None else changed


class CountersFirst(Rule):
    """Looks ahead at counters alone, where constraints come between them and capacity."""

    def __init__(self, amounts: Amounts) -> None:
        self.index = amounts.index
        self.start = amounts.start
        self._amounts = amounts

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:  # noqa: ARG002
        """Return the state as it is; None if too little is left of a counter."""
        amounts = self._amounts
        taken: Mapping[int, int] = states[self.index]
        counters = amounts.counters.get(position)
        if counters is None or (amounts.shared | states[0][1]) >> position & 1:
            return taken
        account, amount = counters
        left = taken.get(account, amounts.left[account])
        guards = amounts.guards[account]
        if left is None or ((left | guards) - amount) & guards != guards:
            return None
        return taken


# --- accounts from what is taken ----------------------------------------------------------------


class Account(NamedTuple):
    """Amounts of which no more can be taken than there is."""

    left: int | None
    guards: int


def amounts_rule(view: View) -> Amounts | None:
    """Return the rule for counters and capacities; None if there are none to count."""
    taken = view.taken
    accounts: list[Account] = []
    counters: dict[int, tuple[int, int]] = {}
    capacity: dict[int, int] = {}
    fixed: set[int] = set()
    for facts, offset, left in zip(view.pools, view.offsets, taken.counters, strict=True):
        if facts.counters is not None:
            for position, amount in facts.counters.takes.items():
                counters[position + offset] = (len(accounts), amount)
            accounts.append(Account(left, facts.counters.layout.guards))
    if view.features.consumable_capacity:
        for position in bits(view.shareable | taken.shared):
            account = _capacity_account(view, position)
            if account is not None:
                capacity[position] = len(accounts)
                if not view.shareable >> position & 1:
                    fixed.add(len(accounts))  # An old share of a device that has one user now.
                accounts.append(account)
    if not accounts:
        return None
    return Amounts(
        1,
        left=[account.left for account in accounts],
        guards=[account.guards for account in accounts],
        counters=counters,
        capacity=capacity,
        fixed=fixed,
        shared=taken.shared & view.shareable,
    )


def _capacity_account(view: View, position: int) -> Account | None:
    capacity = view.spots[position].device.capacity
    if not capacity:
        return None
    width = field_width(view, position)
    consumed = view.taken.capacity.get(position, {})
    left = guards = 0
    is_overdrawn = False
    for place, name in enumerate(sorted(capacity)):
        amount = capacity[name].value.nano - consumed.get(name, 0)
        is_overdrawn |= amount < 0
        left |= max(amount, 0) << place * width
        guards |= 1 << place * width + width - 1
    return Account(None if is_overdrawn else left, guards)


def field_width(view: View, position: int) -> int:
    """Return the bits of a field of a device's account, with the guard."""
    capacity = view.spots[position].device.capacity
    return max(entry.value.nano.bit_length() for entry in capacity.values()) + 2


def packed_takes(view: View, wish: Wish) -> Mapping[int, int]:
    """Return what a request takes of each device's capacity, packed as its account is."""
    found = view.takes.get(wish)
    if found is None:
        found = view.takes[wish] = _pack(view, view.static(wish).consumed)
    return found


def _pack(view: View, consumed_of: Mapping[int, Mapping[str, Quantity]]) -> dict[int, int]:
    takes: dict[int, int] = {}
    for position, consumed in consumed_of.items():
        width = field_width(view, position)
        takes[position] = sum(
            consumed[name].nano << place * width for place, name in enumerate(sorted(consumed))
        )
    return takes
