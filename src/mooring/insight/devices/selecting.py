"""The devices that a class or an expression means, whoever has them."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.resource.v1 import DeviceClass, ResourceSlice
from mooring.cel.device import DeviceCompiler
from mooring.insight.devices.model import DeviceId
from mooring.insight.expressions.fleet import Fleet
from mooring.insight.expressions.inquiry import Inquiry, Outcome, Refusal, inquire

Selected = frozenset[DeviceId]


def selected_by_expression(
    slices: Iterable[ResourceSlice], expression: str, compiler: DeviceCompiler
) -> Selected | Refusal:
    """Return the devices for which an expression is true, or why it cannot be used."""
    inquiry = inquire(expression, compiler)
    if isinstance(inquiry, Refusal):
        return inquiry
    if inquiry.caveat:
        return Refusal(inquiry.caveat)
    return _matching(inquiry, Fleet(slices, names=compiler.extensions))


def selected_by_class(
    slices: Iterable[ResourceSlice], device_class: DeviceClass, compiler: DeviceCompiler
) -> Selected | Refusal:
    """Return the devices that all selectors of a class mean, or why one cannot be used."""
    fleet = Fleet(slices, names=compiler.extensions)
    found = frozenset(DeviceId(each.driver, each.pool, each.name) for each in fleet.devices)
    for number, selector in enumerate(device_class.spec.selectors):
        compiled = compiler.compile("" if selector.cel is None else selector.cel.expression)
        if compiled.error is not None:
            name = device_class.metadata.name
            return Refusal(f"class {name}: selector #{number}: {compiled.error}")
        found &= _matching(Inquiry(compiled), fleet)
    return found


def _matching(inquiry: Inquiry, fleet: Fleet) -> Selected:
    return frozenset(
        DeviceId(device.driver, device.pool, device.name)
        for answer in inquiry.answers(fleet)
        if answer.outcome is Outcome.MATCH
        for device in answer.devices
    )
