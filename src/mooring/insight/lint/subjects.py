"""Objects that select devices with expressions: claims, templates, classes and taint rules.

# ask: whoever selects devices: a request, an alternative of one, a class, a taint rule
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from mooring.api.codec import Place
from mooring.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from mooring.insight.expressions.published_devices import PublishedDevice
from mooring.insight.objects import Object

KINDS: Final = ("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate")

Purpose = Literal["selector", "derived"]


class Expression(NamedTuple):
    """An expression and its place in the object."""

    place: Place
    text: str
    purpose: Purpose = "selector"


class Ask(NamedTuple):
    """Whoever selects devices, and how."""

    place: Place
    reference: str = ""  # the name of the request, `request/alternative` for one of several
    class_name: str | None = None
    selectors: tuple[Expression, ...] = ()
    derived: tuple[tuple[str, Expression], ...] = ()  # name: expression
    admits: Callable[[PublishedDevice], bool] = lambda _: True


def asks_of(subject: Object) -> tuple[Ask, ...]:
    """Return all that select devices in an object."""
    match subject.value:
        case DeviceClass(spec=spec):
            return (Ask(("spec",), selectors=_selectors(spec.selectors, ("spec",))),)
        case DeviceTaintRule():
            return _asks_of_rule(subject.value)
        case _:
            place, claim = claim_of(subject)
            return tuple(_asks_of_claim(claim, place)) if claim is not None else ()


def claim_of(subject: Object) -> tuple[Place, DeviceClaim | None]:
    """Return what a claim or template asks for, and its place."""
    match subject.value:
        case ResourceClaim(spec=spec):
            return ("spec", "devices"), spec.devices
        case ResourceClaimTemplate(spec=template):
            return ("spec", "spec", "devices"), template.spec.devices
        case _:
            return (), None


def constraints_of(subject: Object) -> Iterator[tuple[Place, DeviceConstraint]]:
    """Give the constraints of a claim or template with their places."""
    place, claim = claim_of(subject)
    for i, constraint in enumerate(claim.constraints if claim is not None else ()):
        yield (*place, "constraints", i), constraint


def _asks_of_rule(rule: DeviceTaintRule) -> tuple[Ask, ...]:
    selector = rule.spec.device_selector
    if selector is None:
        return ()
    place = ("spec", "deviceSelector")

    def admits(device: PublishedDevice) -> bool:
        return (
            selector.driver in (None, device.driver)
            and selector.pool in (None, device.pool)
            and selector.device in (None, device.name)
        )

    return (
        Ask(
            place,
            class_name=selector.device_class_name,
            selectors=_selectors(selector.selectors, place),
            admits=admits,
        ),
    )


def _asks_of_claim(claim: DeviceClaim, place: Place) -> Iterator[Ask]:
    for i, request in enumerate(claim.requests or ()):
        at = (*place, "requests", i)
        if request.exactly is not None:
            yield _ask(request.exactly, request.name, (*at, "exactly"))
        for j, alternative in enumerate(request.first_available):
            reference = f"{request.name}/{alternative.name}"
            yield _ask(alternative, reference, (*at, "firstAvailable", j))


def _ask(request: ExactDeviceRequest | DeviceSubRequest, reference: str, place: Place) -> Ask:
    derived = tuple(
        (
            attribute.name,
            Expression(
                (*place, "derivedAttributes", i, "expression"), attribute.expression, "derived"
            ),
        )
        for i, attribute in enumerate(request.derived_attributes)
    )
    return Ask(
        place,
        reference=reference,
        class_name=request.device_class_name,
        selectors=_selectors(request.selectors, place),
        derived=derived,
    )


def _selectors(selectors: tuple[DeviceSelector, ...], place: Place) -> tuple[Expression, ...]:
    return tuple(
        Expression((*place, "selectors", i, "cel", "expression"), selector.cel.expression)
        for i, selector in enumerate(selectors)
        if selector.cel is not None
    )
