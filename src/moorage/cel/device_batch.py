"""The devices of one driver, for expressions over many of them.

A batch takes the constant paths that an expression reads straight from the devices, as columns. The
maps of a device are built when an expression reads something else, or fails.

A cheap expression is evaluated for all devices that are asked for at once. An expensive one is
evaluated device by device, and its answer is kept by what it reads of the device: devices that are
alike in that, now or later, in this batch or another, have the same answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.cel.device import Compiled
from moorage.cel.device_values import (
    DOMAIN_FIELDS,
    as_attribute,
    attribute_value,
    device_variables,
    key_names,
    named,
)
from moorage.cel.lang.attributes import ABSENT, Path
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.program import Evaluated

# Paths that end in a map, which has to be built.
MAPS: frozenset[Path] = frozenset([("device",), *(("device", name) for name in DOMAIN_FIELDS)])
CHUNK_COST = 100_000  # estimated, of the evaluations between two checks whether to go on
PLAIN_SIZE = 1024  # of an answer that is not counted in bytes

Answer = DeviceAttribute | bool | str  # a text is an error


class DeviceBatch:
    """Devices of one driver.

    One with an invalid attribute fails for every expression, whatever that reads.
    """

    def __init__(self, driver: str, devices: Sequence[Device], *, names: bool = False) -> None:
        self.driver = driver
        self._devices = devices
        self._names = names  # whether expressions may read device.name, an extension
        self._columns: dict[Path, list[Any]] = {}
        self._variables: dict[int, dict[str, Any] | str] = {}
        self.unreadable = _unreadable(devices)

    def answers(
        self, compiled: Compiled, numbers: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Yield the answers for the numbered devices in parts; between them it may be interrupted.

        Answers are those of `matches` for a selector, of `attributes` for a derived attribute.
        Numbers go up.
        """
        if numbers and numbers[-1] - numbers[0] + 1 == len(numbers):
            numbers = range(numbers[0], numbers[-1] + 1)  # whose columns need not be picked
        ask = self.matches if compiled.kind == "selector" else self.attributes
        count = CHUNK_COST // (compiled.cost_max or 1) if compiled.is_cheap else 1
        if len(numbers) <= count:
            yield numbers, ask(compiled, numbers)
            return
        for start in range(0, len(numbers), count):
            part = numbers[start : start + count]
            yield part, ask(compiled, part)

    def matches(self, compiled: Compiled, numbers: Sequence[int]) -> list[bool | str]:
        """Return for each numbered device whether it matches, or the error."""
        if not compiled.is_cheap:
            return [self._kept(compiled, number) for number in numbers]
        values = self._metered(compiled, numbers)
        if set(map(type, values)) == {bool}:
            return values
        return [
            value if type(value) is bool else self._planned(compiled, number)
            for number, value in zip(numbers, values, strict=True)
        ]

    def attributes(self, compiled: Compiled, numbers: Sequence[int]) -> list[DeviceAttribute | str]:
        """Return the attribute derived for each numbered device, or the error."""
        if not compiled.is_cheap:
            return [self._kept(compiled, number) for number in numbers]
        values = self._metered(compiled, numbers)
        if set(map(type, values)) == {str}:  # as most are, and of few distinct ones
            made = {value: as_attribute(value) for value in set(values)}
            return list(map(made.__getitem__, values))
        found: list[DeviceAttribute | str] = []
        for number, value in zip(numbers, values, strict=True):
            try:
                found.append(as_attribute(value))
            except EvalError:
                found.append(self._planned(compiled, number))
        return found

    # --- cheap expressions ------------------------------------------------------------

    def _metered(self, compiled: Compiled, numbers: Sequence[int]) -> list[Any]:
        """Return the same as `_values`, if the meter admits it, and count it."""
        meter = compiled.meter
        meter.admit(compiled.cost_max * len(numbers))
        start_s = meter.now_s()
        values = self._values(compiled, numbers)
        meter.record(compiled.expression, len(numbers), start_s)
        return values

    def _values(self, compiled: Compiled, numbers: Sequence[int]) -> list[Any]:
        """Return the results of generated code for the devices; None where it fails."""
        assert compiled.program is not None
        many = compiled.program.many
        if many is None or not MAPS.isdisjoint(many.paths):
            return [None] * len(numbers)
        columns = [self._column(path) for path in many.paths]
        if isinstance(numbers, range):
            if len(numbers) != len(self._devices):
                columns = [column[numbers.start : numbers.stop] for column in columns]
        else:
            columns = [[column[number] for number in numbers] for column in columns]
        batch = zip(*columns, strict=True) if columns else repeat((), len(numbers))
        values, _ = compiled.evaluate_batch(batch)
        if self.unreadable:
            values = [
                None if number in self.unreadable else value
                for number, value in zip(numbers, values, strict=True)
            ]
        return values

    # --- expensive expressions --------------------------------------------------------

    def _kept(self, compiled: Compiled, number: int) -> Any:
        """Return the answer for a device, evaluated unless it is known for what is read of it."""
        key = (compiled.expression, compiled.kind, self._read(compiled, number))
        answer = compiled.answers.get(key)
        if answer is None:
            meter = compiled.meter
            meter.admit(compiled.admission_cost)
            start_s = meter.now_s()
            answer, cost = self._evaluated(compiled, number)
            meter.record(compiled.expression, 1, start_s, (cost,))
            compiled.answers.put(key, answer, _size(answer))
        return answer

    def _evaluated(self, compiled: Compiled, number: int) -> tuple[Answer, int]:
        """Return the answer for one device, and its cost."""
        cells = self._paths(compiled, number)
        if cells is None:
            outcome = self._outcome(compiled, number)
        else:
            row = tuple([self._column(path)[number] for path in cells])
            values, costs = compiled.evaluate_batch([row])
            if costs[0] is None:
                outcome = self._outcome(compiled, number, only_plan=True)
            else:
                outcome = compiled.converted(Evaluated(values[0], costs[0]))
        answer: Answer = outcome.value if outcome.error is None else outcome.error
        return answer, outcome.cost or 0

    def _paths(self, compiled: Compiled, number: int) -> Sequence[Path] | None:
        """Return all that an expression reads of a device; None if that is not known."""
        assert compiled.program is not None
        many = compiled.program.many
        if many is None or number in self.unreadable or not MAPS.isdisjoint(many.paths):
            return None
        return many.paths

    def _read(self, compiled: Compiled, number: int) -> Hashable:
        """Return what an expression reads of a device, as published: answers depend on it alone."""
        device = self._devices[number]
        paths = self._paths(compiled, number)
        if paths is None:
            return (
                self.driver,
                tuple(device.attributes.items()),
                tuple([(name, _amount(each.value)) for name, each in device.capacity.items()]),
                bool(device.allow_multiple_allocations),
                device.name if self._names else None,
            )
        return tuple([self._published(path, number) for path in paths])

    def _published(self, path: Path, number: int) -> Hashable:
        device = self._devices[number]
        match path:
            case (_, "attributes", domain, name):
                return named(device.attributes, self.driver, domain, name)
            case (_, "capacity", domain, name):
                found = named(device.capacity, self.driver, domain, name)
                return None if found is None else _amount(found.value)
        value: Hashable = self._column(path)[number]
        return value

    # --- columns and maps -------------------------------------------------------------

    def _column(self, path: Path) -> list[Any]:
        """Return the values of all devices at the end of a path."""
        column = self._columns.get(path)
        if column is None:
            cells = self._cells(path)
            column = self._columns[path] = cells if isinstance(cells, list) else list(cells)
        return column

    def _cells(self, path: Path) -> Iterable[Any]:
        devices = self._devices
        match path:
            case (_, "driver"):
                return repeat(self.driver, len(devices))
            case (_, "name") if self._names:
                return [device.name for device in devices]
            case (_, "allowMultipleAllocations"):
                return [bool(device.allow_multiple_allocations) for device in devices]
            case (_, "attributes", domain, name) if "/" not in domain:
                return self._attribute_cells(domain, name)
            case (_, "capacity", domain, name) if "/" not in domain:
                return self._capacity_cells(domain, name)
        return repeat(ABSENT, len(devices))

    def _attribute_cells(self, domain: str, name: str) -> list[Any]:
        found = self._named("attributes", domain, name)
        if self.unreadable:
            found = [None if n in self.unreadable else each for n, each in enumerate(found)]
        return [ABSENT if each is None else attribute_value(each) for each in found]

    def _capacity_cells(self, domain: str, name: str) -> list[Any]:
        found = self._named("capacity", domain, name)
        return [ABSENT if each is None else each.value for each in found]

    def _named(self, field: str, domain: str, name: str) -> list[Any]:
        """Return what each device publishes under a name, or None."""
        full, short = key_names(self.driver, domain, name)
        entries = list(map(attrgetter(field), self._devices))
        if full == short:
            return [each.get(full) for each in entries]
        return [each.get(full) or each.get(short) for each in entries]

    def _planned(self, compiled: Compiled, number: int) -> Any:
        """Return the result for a device by its maps; a text is an error."""
        outcome = self._outcome(compiled, number)
        return outcome.value if outcome.error is None else outcome.error

    def _outcome(self, compiled: Compiled, number: int, *, only_plan: bool = False) -> Evaluated:
        """Return the result for a device by its maps, without code where that has failed."""
        variables = self._variables.get(number)
        if variables is None:
            variables = self._variables[number] = self._built(self._devices[number])
        if isinstance(variables, str):
            return Evaluated(None, None, variables)
        return compiled.evaluate_variables(variables, only_plan=only_plan)

    def _built(self, device: Device) -> dict[str, Any] | str:
        try:
            return device_variables(
                self.driver,
                device.attributes,
                device.capacity,
                allow_multiple_allocations=device.allow_multiple_allocations,
                name=device.name if self._names else None,
            )
        except EvalError as error:
            return str(error)


def _unreadable(devices: Sequence[Device]) -> set[int]:
    """Return which devices have an attribute without a valid value."""
    doubtful = {
        attribute  # most are versions, of which devices have few distinct ones
        for device in devices
        for attribute in device.attributes.values()
        if attribute.string_value is None
        and attribute.int_value is None
        and attribute.bool_value is None
        and attribute.string_values is None
        and attribute.int_values is None
        and attribute.bool_values is None
    }
    if all(map(_has_valid_value, doubtful)):
        return set()
    return {n for n, each in enumerate(devices) if not is_readable(each)}


def is_readable(device: Device) -> bool:
    """Return whether every attribute of a device has a valid value."""
    return all(map(_has_valid_value, device.attributes.values()))


def _has_valid_value(attribute: DeviceAttribute) -> bool:
    if (
        attribute.string_value is None
        and attribute.int_value is None
        and attribute.bool_value is None
    ):
        try:
            attribute_value(attribute)
        except (ValueError, EvalError):  # a ValueError is that of an invalid version
            return False
    return True


def _amount(value: Quantity) -> tuple[str, int]:
    """Return an amount as expressions may tell it from others: by its text, too."""
    return str(value), value.nano


def _size(answer: Answer) -> int:
    """Return the size of an answer that is large."""
    size = 0
    if isinstance(answer, str):
        size = len(answer)
    elif isinstance(answer, DeviceAttribute):
        size = len(answer.string_value or "")
        size += sum(map(len, (*(answer.string_values or ()), *(answer.version_values or ()))))
    return size if size > PLAIN_SIZE else 0
