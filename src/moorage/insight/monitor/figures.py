"""The counts of a cluster at one moment.

# shape: what a claim requests, with a name
# stranded: free, but one more claim of a shape cannot use it
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from moorage.insight.devices import ClaimState
from moorage.insight.devices.model import CountKey, StateCounts

# The cause of a pod that would get a node now: the scheduler has not tried it yet.
FITS_NOW: Final = "fits-now"


class WaitingPod(Struct, frozen=True):
    """A pod without a node, with the cause in a word."""

    namespace: str
    name: str
    cause: str  # FITS_NOW or a CauseKind
    since: datetime | None


class RequestRoom(Struct, frozen=True):
    """The devices for one request of a shape."""

    request: str
    matching: int  # free or not
    free: int
    stranded: int | None  # None: unknown, because all claims that were tried fit


class ShapeRoom(Struct, frozen=True):
    """How many more claims of a shape get devices."""

    shape: str
    claims: int
    is_more: bool  # the maximum number of claims was reached
    requests: tuple[RequestRoom, ...] = ()


class Figures(Struct, frozen=True):
    """The counts."""

    devices: Mapping[CountKey, StateCounts] = {}  # by node, or a word for several, and driver
    classes: Mapping[str, StateCounts] = {}  # a device counts for each class that selects it
    invalid_classes: frozenset[str] = frozenset()  # classes whose selectors do not compile
    waiting: tuple[WaitingPod, ...] = ()
    claims: Mapping[ClaimState, tuple[datetime, ...]] = {}  # their creation times, oldest first
    shapes: tuple[ShapeRoom, ...] = ()
    shapes_left_out: int = 0
    unread: tuple[str, ...] = ()  # resources of which some could not be read
