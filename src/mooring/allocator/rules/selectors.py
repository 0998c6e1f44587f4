"""Selectors and derived attributes: what CEL expressions say of the devices of a pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mooring.allocator.bits import bits
from mooring.allocator.rules.attributes import TableBuilder
from mooring.cel.device import DeviceCompiler
from mooring.cel.devices import Devices
from mooring.cel.results import with_hint


class SelectorFault(NamedTuple):
    """Why a selector has no answer for a device."""

    selector: int  # which one
    text: str
    is_compile: bool


class Selected(NamedTuple):
    """The devices that all selectors match, and those for which one has no answer."""

    yes: int
    faults: Mapping[int, SelectorFault]


def select(
    expressions: Iterable[str], devices: Devices, among: int, *, compiler: DeviceCompiler
) -> Selected:
    """Return which devices match all the expressions; each is asked about those left before it."""
    yes = among
    faults: dict[int, SelectorFault] = {}
    for number, expression in enumerate(expressions):
        positions = bits(yes)
        compiled = compiler.compile(expression)
        if compiled.error is not None:
            fault = SelectorFault(number, compiled.error, is_compile=True)
            return Selected(0, faults | dict.fromkeys(positions, fault))
        matches = devices.matches(compiled, positions)
        for position, match in zip(positions, matches, strict=True):
            if match is True:
                continue
            yes ^= 1 << position
            if match is not False:
                faults[position] = SelectorFault(number, with_hint(match), is_compile=False)
    return Selected(yes, faults)


def derive(
    attribute: str,
    expression: str,
    devices: Devices,
    ids: Mapping[int, str],
    builder: TableBuilder,
    *,
    compiler: DeviceCompiler,
) -> None:
    """Put what an expression gives for each device into a table of the attribute's values."""
    compiled = compiler.compile(expression, kind="derived")
    if compiled.error is not None:
        for position in ids:
            builder.add_fault(
                position, f"compile derived attribute {attribute} failed: {compiled.error}"
            )
        return
    positions = list(ids)
    values = devices.attributes(compiled, positions)
    for position, value in zip(positions, values, strict=True):
        if isinstance(value, str):
            where = f"attribute {attribute} on device {ids[position]}"
            builder.add_fault(position, f"evaluate derived {where} failed: {value}")
        else:
            builder.add(position, value)
