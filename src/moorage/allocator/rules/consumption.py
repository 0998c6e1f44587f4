"""Counters of a pool and capacities of a device: a claim cannot take more than is left.

Each is an account: amounts packed into one number, so that a step of the search is one subtraction.
A device that can be shared pays for its counters once, with its first share.

    # field: the bits of one amount, and one guard bit above them
    # guard: a subtraction that takes more than is left clears the guard bit of its field
    # unit: counters are counted in the greatest common divisor of what the pool's devices take
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import gcd
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from moorage.allocator.errors import CapacityError
from moorage.allocator.pools import bits
from moorage.allocator.rules.base import Picks, Rule, States
from moorage.allocator.rules.capacity import consumed_capacity
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import CounterSet, Device

if TYPE_CHECKING:
    from moorage.allocator.node_view import NodeView
    from moorage.allocator.problem import Slot
    from moorage.allocator.requests import Requirements


NOTHING_TAKEN: Mapping[int, int] = {}


class AccountField(NamedTuple):
    """The position of an amount in its account, and the value of one unit, in nano."""

    account: int
    shift: int
    mask: int
    unit: int = 1


class ConsumptionRule(Rule):
    """No account is overdrawn. State: the charged accounts, and the remaining amount of each."""

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
        self.start = NOTHING_TAKEN
        self.fixed = fixed  # accounts that are looked at but not charged
        self.left = left  # by account; None: more is taken than there is
        self.guards = guards
        self.counters = counters  # by position: the account, and how much the device consumes of it
        self.capacity = capacity  # by position: account
        self.shared = shared  # devices with shares, whose counters are paid for

    def _charges(self, picks: Picks, slot: Slot, position: int) -> Sequence[tuple[int, int]]:
        """Return how much a pick consumes of which accounts."""
        counters = self.counters.get(position)
        if counters is not None and (self.shared | picks[1]) >> position & 1:
            counters = None  # They are paid for.
        account = self.capacity.get(position)
        if account is None:
            return (counters,) if counters is not None else ()
        charge = (account, slot.takes[position])
        return (counters, charge) if counters is not None else (charge,)

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:
        """Return the charged accounts after the pick; None if one has too little."""
        taken: Mapping[int, int] = states[self.index]
        for account, amount in self._charges(states[0], slot, position):
            left = taken.get(account)
            if left is None:
                left = self.left[account]
                if left is None:
                    return None
            guards = self.guards[account]
            rest = (left | guards) - amount
            if rest & guards != guards:
                return None
            if account not in self.fixed:
                taken = {**taken, account: rest ^ guards}
        return taken


class CountersFirst(Rule):
    """Looks ahead at counters alone, where constraints come between them and capacity."""

    def __init__(self, amounts: ConsumptionRule) -> None:
        self.index = amounts.index
        self.start = amounts.start
        self._amounts = amounts

    def take(self, states: States, slot: Slot, position: int) -> Mapping[int, int] | None:  # noqa: ARG002
        """Return the state unchanged; None if too little is left of a counter."""
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


# --- accounts on a node ---------------------------------------------------------------------------


class Account(NamedTuple):
    """Amounts of which no more can be taken than there is."""

    left: int | None
    guards: int


def consumption_rule(view: NodeView) -> ConsumptionRule | None:
    """Return the rule for counters and capacities; None if there are none to count."""
    taken = view.allocated
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
    return ConsumptionRule(
        1,
        left=[account.left for account in accounts],
        guards=[account.guards for account in accounts],
        counters=counters,
        capacity=capacity,
        fixed=fixed,
        shared=taken.shared & view.shareable,
    )


def _capacity_account(view: NodeView, position: int) -> Account | None:
    capacity = view.devices[position].capacity
    if not capacity:
        return None
    width = field_width(view, position)
    consumed = view.allocated.capacity.get(position, {})
    left = guards = 0
    is_overdrawn = False
    for place, name in enumerate(sorted(capacity)):
        amount = capacity[name].value.nano - consumed.get(name, 0)
        is_overdrawn |= amount < 0
        left |= max(amount, 0) << place * width
        guards |= 1 << place * width + width - 1
    return Account(None if is_overdrawn else left, guards)


def field_width(view: NodeView, position: int) -> int:
    """Return the bits of a field of a device's account, with the guard."""
    capacity = view.devices[position].capacity
    return max(entry.value.nano.bit_length() for entry in capacity.values()) + 2


Consumed = Mapping[int, Mapping[str, Quantity]]  # by position, by capacity


def packed_takes(view: NodeView, requirements: Requirements) -> Mapping[int, int]:
    """Return how much of each device's capacity a request consumes, packed like its account."""
    found = view.takes.get(requirements)
    if found is None:
        found = view.takes[requirements] = pack_takes(view, view.static(requirements).consumed)
    return found


def consumed_of_whole(view: NodeView, requirements: Requirements) -> Consumed:
    """Return what a request consumes of devices that have shares, but one user from now on."""
    requests = {name: amount for name, _, amount in requirements.amounts}
    fractional = view.features.fractional_capacity_range
    found = {}
    for position in bits(view.allocated.shared & ~view.shareable):
        try:
            takes = consumed_capacity(
                requests, view.devices[position].capacity, fractional=fractional
            )
        except CapacityError:
            continue  # The device is none of the candidates.
        if takes:
            found[position] = takes
    return found


def pack_takes(view: NodeView, consumed_of: Consumed) -> dict[int, int]:
    """Return consumed amounts, packed like the devices' accounts."""
    takes: dict[int, int] = {}
    for position, consumed in consumed_of.items():
        width = field_width(view, position)
        takes[position] = sum(
            consumed[name].nano << place * width for place, name in enumerate(sorted(consumed))
        )
    return takes


_consumed = attrgetter("consumes_counters")

PUBLISHED_MAX = 8  # sorts of pools whose counters are remembered

CounterKey = tuple[str, str]  # counter set, counter


class Layout(NamedTuple):
    """Where the fields of a packed number are."""

    fields: Mapping[CounterKey, int]  # its place among the fields
    units: Sequence[int]
    width: int  # bits of a field, with its guard
    guards: int

    def pack(self, amounts: Mapping[CounterKey, int]) -> int:
        """Return amounts in nano as one number; each is rounded down to whole units."""
        packed = 0
        for field, amount in amounts.items():
            place = self.fields[field]
            packed += (amount // self.units[place]) << (place * self.width)
        return packed

    def unpack(self, packed: int) -> dict[CounterKey, int]:
        """Return the fields of a packed number, in units."""
        mask = (1 << self.width) - 1
        return {key: packed >> place * self.width & mask for key, place in self.fields.items()}


class Counters(NamedTuple):
    """The counters of a pool, what each of its devices takes, and what there is in all."""

    layout: Layout
    totals: Mapping[CounterKey, int]  # in nano
    takes: Mapping[int, int]  # packed, by position; only devices that take something
    consumers: int  # mask of the devices that name a counter set
    can_grow: bool  # whether some device takes less than nothing, which Kubernetes does not refuse

    def left(self, taken: Iterable[Device]) -> int | None:
        """Return the rest, packed, while these devices are allocated; None if overdrawn."""
        left = dict(self.totals)
        for device in taken:
            for field, amount in amounts_of(device):
                if field in left:
                    left[field] -= amount
        if any(amount < 0 for amount in left.values()):
            return None
        return self.layout.pack(left)


def amounts_of(device: Device) -> Iterator[tuple[CounterKey, int]]:
    """Return how much a device consumes of each counter, in nano."""
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), counter.value.nano


class PublishedCounters:
    """Counters of pools; pools whose devices consume the same share them."""

    def __init__(self) -> None:
        self._recent: deque[tuple[object, Counters]] = deque(maxlen=PUBLISHED_MAX)

    def of(
        self, devices: Sequence[Device], others: Sequence[Device], sets: Mapping[str, CounterSet]
    ) -> Counters:
        """Return the counters of a pool."""
        consumed = [*map(_consumed, devices)], [*map(_consumed, others)], sets
        for published, counters in self._recent:
            if published == consumed:
                return counters
        counters = counters_of(devices, others, sets)
        self._recent.appendleft((consumed, counters))
        return counters


def counters_of(
    devices: Sequence[Device],
    others: Sequence[Device],
    sets: Mapping[str, CounterSet],
) -> Counters:
    """Return the counters of a pool."""
    totals = {
        (name, counter_name): counter.value.nano
        for name in sorted(sets)
        for counter_name, counter in sorted(sets[name].counters.items())
    }
    fields = {field: place for place, field in enumerate(totals)}
    units = [0] * len(fields)
    sizes = [abs(total) for total in totals.values()]
    taken: list[list[tuple[int, int]]] = []  # by device: places, and amounts in nano
    for device in (*devices, *others):
        amounts: list[tuple[int, int]] = []
        for consumption in device.consumes_counters:
            counter_set = consumption.counter_set
            for name, counter in consumption.counters.items():
                place, amount = fields[counter_set, name], counter.value.nano
                units[place] = gcd(units[place], amount)
                sizes[place] += abs(amount)
                amounts.append((place, amount))
        taken.append(amounts)
    units = [unit or 1 for unit in units]
    largest = max([size // unit for size, unit in zip(sizes, units, strict=True)], default=0)
    width = largest.bit_length() + 2
    guards = sum([1 << (place * width + width - 1) for place in range(len(fields))])
    takes: dict[int, int] = {}
    consumers = 0
    for position, device in enumerate(devices):
        if device.consumes_counters:
            consumers |= 1 << position
            # Amounts are whole units, so those of a set that is named twice add up.
            takes[position] = sum(
                [amount // units[place] << place * width for place, amount in taken[position]]
            )
    can_grow = any(amount < 0 for each in taken[: len(devices)] for _, amount in each)
    return Counters(Layout(fields, units, width, guards), totals, takes, consumers, can_grow)
