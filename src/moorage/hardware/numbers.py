"""Numbers as the kernel writes them: integers, lists of CPUs and addresses on PCI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

CPUS_MAX = 8192  # the limit of the largest kernel builds
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_ADDRESS = re.compile(r"([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])")


def parse_integer(text: str) -> int:
    """Parse the integer in a file, or raise ValueError."""
    stripped = text.strip()
    if not INTEGER.fullmatch(stripped):
        raise ValueError(f"{stripped[:40]!r} is not an integer")
    return int(stripped)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """cpus = [ range *( "," range ) ];  range = first [ "-" last ]"""
    cpus: list[int] = []
    for part in text.strip().split(",") if text.strip() else ():
        found = _RANGE.fullmatch(part)
        if found is None:
            raise ValueError(f"{part[:40]!r} is not a range of CPUs")
        first = int(found[1])
        last = int(found[2] or first)
        if last < first or len(cpus) + last - first >= CPUS_MAX:
            raise ValueError(f"{part[:40]!r} is empty or has more than {CPUS_MAX} CPUs")
        cpus.extend(range(first, last + 1))
    return tuple(cpus)


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Return CPUs as the kernel lists them: `0-3,8`."""
    return ",".join(_ranges(sorted(set(cpus))))


def _ranges(cpus: list[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(cpus), key=lambda pair: pair[1] - pair[0]):
        numbers = [cpu for _, cpu in run]
        yield f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"


class PciAddress(NamedTuple):
    """The address of a PCI function: `0000:3f:00.1`."""

    domain: int
    bus: int
    slot: int
    function: int

    @classmethod
    def parse(cls, text: str) -> PciAddress:
        """address = domain ":" bus ":" slot "." function, in lower-case hexadecimal digits"""
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:40]!r} is not an address such as 0000:3f:00.1")
        return cls(*(int(part, 16) for part in found.groups()))

    def plus(self, functions: int) -> PciAddress:
        """Return the address a number of functions later, as virtual functions are numbered."""
        routing = (self.bus << 8 | self.slot << 3 | self.function) + functions
        return PciAddress(self.domain, routing >> 8, routing >> 3 & 31, routing & 7)

    def __str__(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.slot:02x}.{self.function:x}"
