"""Evaluate an expression over the devices of a driver, reading from them only what it reads.

What an expression sees of a device is three maps deep and takes longer to build than to evaluate
it once. Most expressions read a few constant paths; those are taken straight from the device. The
maps are built for a device when an expression reads something else of it, or fails.

A device with an attribute that is no value has no answer for any expression, whatever that reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from mooring.api.resource.v1 import Device, DeviceAttribute
from mooring.cel.device import COST_LIMIT, Compiled
from mooring.cel.inputs import DOMAIN_FIELDS, attribute_value, device_variables, named
from mooring.cel.lang.attributes import ABSENT
from mooring.cel.lang.cells import Path
from mooring.cel.lang.program import Evaluated
from mooring.cel.lang.values import EvalError
from mooring.cel.results import as_attribute

# Paths that end in a map, which is not taken from the device but built.
MAPS: frozenset[Path] = frozenset([("device",), *(("device", name) for name in DOMAIN_FIELDS)])


class Devices:
    """Devices of one driver."""

    def __init__(self, driver: str, devices: Sequence[Device], *, names: bool = False) -> None:
        self._driver = driver
        self._devices = devices
        self._names = names  # whether expressions may read device.name, an extension
        self._numbers = list(range(len(devices)))
        self._columns: dict[Path, list[Any]] = {}
        self._variables: dict[int, dict[str, Any] | str] = {}
        self._unreadable = {n for n, device in enumerate(devices) if not _is_readable(device)}

    def matches(self, compiled: Compiled, numbers: Sequence[int]) -> list[bool | str]:
        """Return for each numbered device whether it matches, or why there is no answer."""
        return [
            value if type(value) is bool else self._answer(compiled, number)
            for number, value in zip(numbers, self._values(compiled, numbers), strict=True)
        ]

    def attributes(self, compiled: Compiled, numbers: Sequence[int]) -> list[DeviceAttribute | str]:
        """Return the attribute derived for each numbered device, or why there is none."""
        found: list[DeviceAttribute | str] = []
        for number, value in zip(numbers, self._values(compiled, numbers), strict=True):
            try:
                found.append(as_attribute(value))
            except EvalError:
                found.append(self._answer(compiled, number))
        return found

    def _values(self, compiled: Compiled, numbers: Sequence[int]) -> Iterable[Any]:
        """Return what generated code gives for the devices; None where it gives nothing."""
        assert compiled.program is not None
        many = compiled.program.many
        if many is None or not MAPS.isdisjoint(many.paths):
            return repeat(None, len(numbers))
        columns = [self._column(path) for path in many.paths]
        if list(numbers) != self._numbers:
            columns = [[column[number] for number in numbers] for column in columns]
        batch = zip(*columns, strict=True) if columns else repeat((), len(numbers))
        values, _ = many.evaluate(batch, COST_LIMIT)
        if self._unreadable:
            values = [
                None if number in self._unreadable else value
                for number, value in zip(numbers, values, strict=True)
            ]
        return values

    def _column(self, path: Path) -> list[Any]:
        """Return what all devices have at the end of a path."""
        column = self._columns.get(path)
        if column is None:
            column = self._columns[path] = list(self._cells(path))
        return column

    def _cells(self, path: Path) -> Iterable[Any]:
        devices = self._devices
        match path:
            case (_, "driver"):
                return repeat(self._driver, len(devices))
            case (_, "name") if self._names:
                return [device.name for device in devices]
            case (_, "allowMultipleAllocations"):
                return [bool(device.allow_multiple_allocations) for device in devices]
            case (_, "attributes", domain, name):
                return self._attribute_cells(domain, name)
            case (_, "capacity", domain, name):
                return self._capacity_cells(domain, name)
        return repeat(ABSENT, len(devices))

    def _attribute_cells(self, domain: str, name: str) -> Iterator[Any]:
        for number, device in enumerate(self._devices):
            found = named(device.attributes, self._driver, domain, name)
            if found is None or number in self._unreadable:
                yield ABSENT
            else:
                yield attribute_value(found)

    def _capacity_cells(self, domain: str, name: str) -> Iterator[Any]:
        for device in self._devices:
            found = named(device.capacity, self._driver, domain, name)
            yield ABSENT if found is None else found.value

    def _answer(self, compiled: Compiled, number: int) -> Any:
        """Return what the expression gives for a device, the careful way; a text is an error."""
        variables = self._variables.get(number)
        if variables is None:
            variables = self._variables[number] = self._built(self._devices[number])
        if isinstance(variables, str):
            return variables
        answer: Evaluated = compiled.evaluate_variables(variables)
        return answer.value if answer.error is None else answer.error

    def _built(self, device: Device) -> dict[str, Any] | str:
        try:
            return device_variables(
                self._driver,
                device.attributes,
                device.capacity,
                allow_multiple_allocations=device.allow_multiple_allocations,
                name=device.name if self._names else None,
            )
        except EvalError as error:
            return str(error)


def _is_readable(device: Device) -> bool:
    """Return whether every attribute of a device is a value."""
    for attribute in device.attributes.values():
        if (
            attribute.string_value is None
            and attribute.int_value is None
            and attribute.bool_value is None
        ):
            try:
                attribute_value(attribute)
            except ValueError:  # a version that is none
                return False
            except EvalError:
                return False
    return True
