"""The devices that selectors are put to, in rows that look alike to all expressions so far.

A repair tries dozens of expressions on thousands of devices. Rows are split further when an
expression reads a field that none has read before: one pass over the devices for each field,
however many expressions read it.

# shape: driver and names of attributes and capacities: what decides which fields a device has
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from moorage.insight.expressions.published_devices import (
    Carriers,
    PublishedDevice,
    PublishedDevices,
    carriers_of,
)
from moorage.insight.expressions.syntax import DeviceField


class Row(NamedTuple):
    """Devices that look alike; the first represents all."""

    first: PublishedDevice
    size: int

    @property
    def variables(self) -> dict[str, Any]:
        """The variables of expressions."""
        return self.first.variables or {}


class Devices:
    """The devices that expressions are put to, and all that are published."""

    def __init__(
        self,
        candidates: Sequence[PublishedDevice],
        fleet: PublishedDevices,
        is_class_known: bool = True,
    ) -> None:
        """Without a known class there are too many candidates: devices of any driver."""
        self.candidates = [each for each in candidates if each.is_readable]
        self.fleet = fleet
        self.is_class_known = is_class_known
        self._numbers = [0] * len(self.candidates)  # of rows, by candidate
        self._reads: set[DeviceField] = set()
        self._rows: list[Row] | None = None
        if not is_class_known:
            self._split([each.shape for each in self.candidates])

    @cached_property
    def carriers(self) -> Carriers:
        """How many candidates have each field."""
        return carriers_of(self.candidates)

    def rows(self, reads: Iterable[DeviceField]) -> list[Row]:
        """Return rows that look alike to whoever reads these fields, in order of their devices."""
        for read in sorted(set(reads) - self._reads):
            self._reads.add(read)
            self._split(self.fleet.looks(read, self.candidates))
        if self._rows is None:
            firsts: dict[int, PublishedDevice] = {}
            counts: dict[int, int] = {}
            for number, device in zip(self._numbers, self.candidates, strict=True):
                if number in counts:
                    counts[number] += 1
                else:
                    firsts[number] = device
                    counts[number] = 1
            self._rows = [Row(firsts[number], counts[number]) for number in firsts]
        return self._rows

    def concerned(self, reads: Iterable[DeviceField]) -> list[Row]:
        """Return the rows on which errors count.

        Where the class is not known, these are the devices that know a domain that is read.
        """
        rows = self.rows(reads)
        domains = {read.domain for read in reads if read.domain}
        if self.is_class_known or not domains:
            return rows
        found = [row for row in rows if any(row.first.knows(domain) for domain in domains)]
        return found or rows

    def _split(self, looks: Sequence[Any]) -> None:
        known: dict[Any, int] = {}
        numbers = [
            known.setdefault(pair, len(known)) for pair in zip(self._numbers, looks, strict=True)
        ]
        if len(known) > len(set(self._numbers)):
            self._rows = None
        self._numbers = numbers
