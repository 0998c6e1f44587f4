"""What may refuse a device for a request, with the values that decided."""

from __future__ import annotations

from msgspec import Struct

from mooring.insight.expressions.explanation import Reason


class _Tagged(Struct, frozen=True, tag_field="refused"):
    """A refusal as JSON names it."""


class ForOtherNodes(_Tagged, frozen=True, tag="by its choice of nodes"):
    """The device says itself on which nodes it can be used, and this is none of them."""


class NoMatch(_Tagged, frozen=True, tag="by a selector"):
    """A selector does not match."""

    device_class: str  # "" if it is one of the request
    selector: int
    expression: str
    reasons: tuple[Reason, ...]


class InUse(_Tagged, frozen=True, tag="in use"):
    """Claims have it."""

    holders: tuple[str, ...]


class Tainted(_Tagged, frozen=True, tag="by a taint"):
    """It has a taint that the request does not tolerate."""

    taint: str  # key=value:effect


class Amount(Struct, frozen=True):
    """How much there is of a counter or capacity, how much is left, and how much is wanted."""

    name: str
    there: str
    left: str
    wanted: str


class TooLittle(_Tagged, frozen=True, tag="by an amount"):
    """It has not enough of something, or its pool has not."""

    amounts: tuple[Amount, ...]


class Unfit(_Tagged, frozen=True, tag="as unfit"):
    """Something else about it does not fit."""

    text: str


class Other(Struct, frozen=True):
    """A device that could serve a request, with its value."""

    request: str
    device: str
    value: str


class Clash(_Tagged, frozen=True, tag="by a constraint"):
    """A constraint does not go with its value and those of devices for other requests."""

    attribute: str
    must_match: bool  # else be distinct
    value: str  # "" if it has none
    others: tuple[Other, ...]


class Fault(_Tagged, frozen=True, tag="by a fault"):
    """It cannot be judged."""

    text: str


Refusal = ForOtherNodes | NoMatch | InUse | Tainted | TooLittle | Unfit | Clash | Fault
