"""Evaluate expressions over many devices, each distinct content once.

Devices that are alike in all that an expression can see give the same answer. So a device is
brought down to its Content, contents that are equal are one object, and an expression's answers
are remembered by content: a republished slice, or a thousand equal nodes, cost nothing again.
Contents that differ are evaluated together, from columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device
from mooring.cel.columns import Columns
from mooring.cel.device import COST_LIMIT, Compiled
from mooring.cel.inputs import device_variables
from mooring.cel.lang.program import Evaluated
from mooring.cel.lang.values import EvalError

CONTENTS_MAX = 1_000_000


class Content:
    """What expressions can see of a device: the variables, or why there are none."""

    __slots__ = ("device", "error", "variables")

    def __init__(self, variables: dict[str, Any] | None, error: str | None) -> None:
        self.variables = variables
        self.device = variables and variables["device"]  # the only variable there is
        self.error = error

    def evaluate(self, compiled: Compiled, *, cost_limit: int = COST_LIMIT) -> Evaluated:
        """Return what the expression gives for this content."""
        if self.variables is None:
            return Evaluated(None, None, self.error)
        return compiled.evaluate_variables(self.variables, cost_limit=cost_limit)


class Seen(NamedTuple):
    """A device of a fleet: who it is, and what expressions see of it."""

    driver: str
    pool: str
    device: Device
    content: Content


class Contents:
    """The distinct contents that were met, found by what is in them."""

    def __init__(self, contents_max: int = CONTENTS_MAX) -> None:
        self._known: dict[bytes, Content] = {}
        self._contents_max = contents_max

    def of(self, driver: str, device: Device, *, with_name: bool = False) -> Content:
        """Return the content of a device; equal devices have the same one."""
        key = _key(driver, device, with_name=with_name)
        content = self._known.get(key)
        if content is None:
            if len(self._known) >= self._contents_max:
                self._known.clear()  # Who holds a content keeps it; only sharing starts anew.
            content = self._known[key] = _content(driver, device, with_name=with_name)
        return content


class Answers(NamedTuple):
    """What an expression gave for the devices of a fleet, each list in their order."""

    values: list[Any]  # None where there is an error
    costs: list[int | None]
    errors: dict[int, str]  # by the position of the device


class Fleet:
    """Devices to be evaluated together. Answers are kept as long as the fleet is."""

    def __init__(self, devices: Iterable[Seen]) -> None:
        self.devices: Sequence[Seen] = tuple(devices)
        contents = {id(seen.content): seen.content for seen in self.devices}.values()
        rows = [content.device for content in contents if content.device is not None]
        self._columns = Columns(rows)
        # Contents without variables come last, so that the others have the numbers of rows.
        self._contents = sorted(contents, key=lambda content: content.device is None)
        self._without = len(contents) - len(rows)
        numbers = {id(content): number for number, content in enumerate(self._contents)}
        self._numbers = [numbers[id(seen.content)] for seen in self.devices]
        self._is_in_order = self._numbers == list(range(len(self._contents)))
        self._answers: dict[tuple[str, str], Answers] = {}

    def evaluate(self, compiled: Compiled) -> Answers:
        """Return what the expression gives for each device; worked out once for each content."""
        key = (compiled.kind, compiled.expression)
        answers = self._answers.get(key)
        if answers is None:
            answers = self._answers[key] = self._spread(self._evaluate(compiled))
        return answers

    def _evaluate(self, compiled: Compiled) -> Answers:
        """Return the answers of contents: generated code for most, the careful way for others."""
        assert compiled.program is not None
        values: list[Any] = [None] * len(self._contents)
        costs: list[int | None] = [None] * len(self._contents)
        many = compiled.program.many
        if many is not None and compiled.kind == "selector":
            values, costs = many.evaluate(self._columns.batch(many.paths), COST_LIMIT)
            values.extend([None] * self._without)
            costs.extend([None] * self._without)
            if set(map(type, values)) <= {bool}:
                return Answers(values, costs, {})
        errors: dict[int, str] = {}
        for number, value in enumerate(values):
            if type(value) is not bool:
                answer = self._contents[number].evaluate(compiled)
                values[number], costs[number] = answer.value, answer.cost
                if answer.error is not None:
                    errors[number] = answer.error
        return Answers(values, costs, errors)

    def _spread(self, answers: Answers) -> Answers:
        """Return the answers of contents as answers of devices."""
        if self._is_in_order:
            return answers
        values = [answers.values[number] for number in self._numbers]
        costs = [answers.costs[number] for number in self._numbers]
        errors = {
            position: answers.errors[number]
            for position, number in enumerate(self._numbers)
            if number in answers.errors
        }
        return Answers(values, costs, errors)


def _key(driver: str, device: Device, *, with_name: bool) -> bytes:
    visible = [
        driver,
        device.name if with_name else "",
        device.allow_multiple_allocations or False,
        device.attributes,
        [(name, entry.value) for name, entry in device.capacity.items()],
    ]
    return msgspec.json.encode(visible, enc_hook=_quantity_text, order="deterministic")


def _quantity_text(value: Any) -> str:
    assert isinstance(value, Quantity)
    return value.exact


def _content(driver: str, device: Device, *, with_name: bool) -> Content:
    try:
        variables = device_variables(
            driver,
            device.attributes,
            device.capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
            name=device.name if with_name else None,
        )
    except EvalError as error:
        return Content(None, str(error))
    return Content(variables, None)
