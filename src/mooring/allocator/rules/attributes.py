"""What constraints compare: the values of an attribute, for every device of a pool or node.

# element: one value with its type, as ("int", 3); a list has several
# known: the devices that have the attribute, with a value that can be compared
# only_first: devices whose value equals no other; a constraint takes one as its first only
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mooring.api.resource.v1 import Device, DeviceAttribute

Element = tuple[str, int | bool | str]


class Table(NamedTuple):
    """The values of one attribute; masks have the bits of devices' positions."""

    known: int
    only_first: int
    holders: Mapping[Element, int]  # the devices that have an element
    elements: Mapping[int, tuple[Element, ...]]  # by position
    faults: Mapping[int, str]  # why there is no answer for a position


def published(device: Device, driver: str, attribute: str) -> DeviceAttribute | None:
    """Return a device's own attribute of a qualified name; the driver's domain may be left out."""
    found = device.attributes.get(attribute)
    if found is not None:
        return found
    domain, slash, short = attribute.partition("/")
    if not slash or domain != driver:
        return None
    return device.attributes.get(short)


def elements_of(attribute: DeviceAttribute, *, with_lists: bool) -> tuple[Element, ...]:
    """Return the elements of an attribute; none if it has no value that can be compared."""
    if with_lists:
        for type_, values in (
            ("int", attribute.int_values),
            ("bool", attribute.bool_values),
            ("string", attribute.string_values),
            ("version", attribute.version_values),
        ):
            if values:
                return tuple(dict.fromkeys((type_, value) for value in values))
    if attribute.string_value is not None:
        return (("string", attribute.string_value),)
    if attribute.int_value is not None:
        return (("int", attribute.int_value),)
    if attribute.bool_value is not None:
        return (("bool", attribute.bool_value),)
    if attribute.version_value is not None:
        return (("version", attribute.version_value),)
    return ()


class TableBuilder:
    """Gathers the values of an attribute, device by device."""

    def __init__(self, *, with_lists: bool) -> None:
        self._with_lists = with_lists
        self._known = 0
        self._only_first = 0
        self._holders: dict[Element, int] = {}
        self._elements: dict[int, tuple[Element, ...]] = {}
        self._faults: dict[int, str] = {}

    def add(self, position: int, attribute: DeviceAttribute | None) -> None:
        """Take in the attribute of a device."""
        if attribute is None:
            return
        elements = elements_of(attribute, with_lists=self._with_lists)
        if not elements and self._with_lists:
            return
        bit = 1 << position
        self._known |= bit
        if not elements:
            self._only_first |= bit
        for element in elements:
            self._holders[element] = self._holders.get(element, 0) | bit
        self._elements[position] = elements

    def add_fault(self, position: int, text: str) -> None:
        """Take in why there is no answer for a device."""
        self._faults[position] = text

    def add_table(self, table: Table, offset: int) -> None:
        """Take in the table of a pool whose devices begin at a position."""
        self._known |= table.known << offset
        self._only_first |= table.only_first << offset
        for element, mask in table.holders.items():
            self._holders[element] = self._holders.get(element, 0) | mask << offset
        for position, elements in table.elements.items():
            self._elements[position + offset] = elements
        for position, text in table.faults.items():
            self._faults[position + offset] = text

    def table(self) -> Table:
        """Return what was gathered."""
        return Table(self._known, self._only_first, self._holders, self._elements, self._faults)
