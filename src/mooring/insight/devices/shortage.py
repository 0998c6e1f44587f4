"""Who has what a blocked device needs: counters that are used up, groups that do not agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from mooring.allocator.ledger import Ledger
from mooring.allocator.pools import Pool
from mooring.allocator.rules.counters import CounterKey, amounts_of
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device
from mooring.insight.devices.model import ClaimId, DeviceId, Reason, State, User


class Shortages:
    """What the taken devices of a pool have of its counters."""

    def __init__(self, pool: Pool, ledger: Ledger) -> None:
        self._pool = pool
        self._entries = ledger.taken(pool.id)

    def counters(self, device: Device) -> tuple[Reason, ...]:
        """Return which counters of the pool have too little left for a device.

        One that somebody has is paid for already; then not counters are short but its capacity.
        """
        if device.name in self._entries:
            return ()
        return tuple(self._overdrawn or self._short(device))

    def groups(self, device: Device) -> tuple[Reason, ...]:
        """Return which taken devices a device is not compatible with."""
        found = []
        for consumption in device.consumes_counters:
            users = self._users_of_set.get(consumption.counter_set, ())
            mine = set(consumption.compatibility_groups)
            if any(not mine & set(theirs) for theirs, _ in users):
                named = ", ".join(consumption.compatibility_groups) or "none"
                text = (
                    f"compatibility groups {named} on counter set {consumption.counter_set}: "
                    "devices in use there have no group in common with it"
                )
                found.append(Reason(State.BLOCKED, text, tuple(user for _, user in users)))
        return tuple(found)

    def _short(self, device: Device) -> Iterator[Reason]:
        needs: dict[CounterKey, Quantity] = {}
        for consumption in device.consumes_counters:
            for name, counter in consumption.counters.items():
                key = (consumption.counter_set, name)
                needs[key] = needs.get(key, Quantity.ZERO) + counter.value
        for key, need in needs.items():
            total = self._totals.get(key)
            if total is None:
                continue
            left = total - self._used.get(key, Quantity.ZERO)
            if left < need:
                text = f"counter {key[0]}/{key[1]}: needs {need}, {left} of {total} left"
                yield Reason(State.BLOCKED, text, self._users.get(key, ()))

    @cached_property
    def _overdrawn(self) -> list[Reason]:
        """More is taken of a counter than there is: then no device of the pool that has any."""
        return [
            Reason(
                State.BLOCKED,
                f"counter {key[0]}/{key[1]} is overdrawn: {used} of {self._totals[key]} used",
                self._users.get(key, ()),
            )
            for key, used in self._used.items()
            if key in self._totals and self._totals[key] < used
        ]

    @cached_property
    def _totals(self) -> dict[CounterKey, Quantity]:
        return {
            (name, counter_name): counter.value
            for name, counter_set in self._pool.counter_sets.items()
            for counter_name, counter in counter_set.counters.items()
        }

    @cached_property
    def _taken(self) -> list[tuple[Device, User]]:
        spots = (*self._pool.spots, *self._pool.others)
        return [
            (spot.device, self._user(spot.device.name))
            for spot in spots
            if spot.device.name in self._entries and spot.device.consumes_counters
        ]

    @cached_property
    def _used(self) -> dict[CounterKey, Quantity]:
        used: dict[CounterKey, Quantity] = {}
        for device, _ in self._taken:
            for consumption in device.consumes_counters:
                for name, counter in consumption.counters.items():
                    key = (consumption.counter_set, name)
                    used[key] = used.get(key, Quantity.ZERO) + counter.value
        return used

    @cached_property
    def _users(self) -> dict[CounterKey, tuple[User, ...]]:
        users: dict[CounterKey, dict[User, None]] = {}
        for device, user in self._taken:
            for key, _ in amounts_of(device):
                users.setdefault(key, {})[user] = None
        return {key: tuple(found) for key, found in users.items()}

    @cached_property
    def _users_of_set(self) -> dict[str, list[tuple[tuple[str, ...], User]]]:
        users: dict[str, list[tuple[tuple[str, ...], User]]] = {}
        for device, user in self._taken:
            for consumption in device.consumes_counters:
                entry = (consumption.compatibility_groups, user)
                users.setdefault(consumption.counter_set, []).append(entry)
        return users

    def _user(self, name: str) -> User:
        entries = self._entries[name]
        claims = _unique(ClaimId(*entry.claim) for entry in entries)
        return User(DeviceId(*self._pool.id, name), claims)


def _unique(claims: Iterable[ClaimId]) -> tuple[ClaimId, ...]:
    return tuple(dict.fromkeys(claims))
