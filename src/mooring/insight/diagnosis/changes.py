"""Changes: what could be otherwise in a situation, each small and each a value.

A fix is one or two changes. A member of a conflict is known by the change that takes it away.
Places and numbers mean the situation as it was: changes that are applied together do not shift
one another.
"""

from __future__ import annotations

from msgspec import Struct

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import DeviceToleration
from mooring.insight.diagnosis.situation import Place


class _Tagged(Struct, frozen=True, tag_field="change"):
    """A change as JSON names it."""


class DropRequest(_Tagged, frozen=True, tag="drop request"):
    """Do without a request."""

    claim: int
    request: int


class DropAlternative(_Tagged, frozen=True, tag="drop subrequest"):
    """Do without one alternative of a request."""

    place: Place


class DropConstraint(_Tagged, frozen=True, tag="drop constraint"):
    """Do without a constraint of a claim."""

    claim: int
    constraint: int


class DropSelector(_Tagged, frozen=True, tag="drop selector"):
    """Do without a selector of a request."""

    place: Place
    selector: int


class DropClassSelector(_Tagged, frozen=True, tag="drop class selector"):
    """Do without a selector of a class."""

    device_class: str
    selector: int


class LowerCount(_Tagged, frozen=True, tag="lower count"):
    """Ask for fewer devices."""

    place: Place
    count: int


class AskCapacity(_Tagged, frozen=True, tag="ask for capacity"):
    """Ask for another amount of a capacity; None: do not ask for it."""

    place: Place
    name: str
    amount: Quantity | None = None


class Tolerate(_Tagged, frozen=True, tag="tolerate"):
    """Put up with a taint, in one request or, without a place, in all."""

    toleration: DeviceToleration
    place: Place | None = None


class FreeClaim(_Tagged, frozen=True, tag="free claim"):
    """Take back what a claim has."""

    namespace: str
    name: str


class SwitchFeature(_Tagged, frozen=True, tag="switch feature"):
    """Switch a feature on or off; it has its name in `Features`."""

    feature: str
    is_on: bool


class PublishList(_Tagged, frozen=True, tag="publish list"):
    """Let a driver publish several values of an attribute where its devices have one of them."""

    driver: str
    attribute: str
    values: tuple[int, ...]


Change = (
    DropRequest
    | DropAlternative
    | DropConstraint
    | DropSelector
    | DropClassSelector
    | LowerCount
    | AskCapacity
    | Tolerate
    | FreeClaim
    | SwitchFeature
    | PublishList
)
Changes = frozenset[Change]
