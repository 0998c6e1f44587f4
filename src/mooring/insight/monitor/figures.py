"""The counts of a cluster at one moment.

# shape: what a claim asks for, under a name
# stranded: free, and of no use to one more claim of a shape
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from mooring.insight.devices import ClaimState
from mooring.insight.devices.model import CountKey, StateCounts

# The cause of a pod that the scheduler has not come to yet: it would get a node now.
FITS_NOW: Final = "fits-now"


class WaitingPod(Struct, frozen=True):
    """A pod without a node, and why, in a word."""

    namespace: str
    name: str
    cause: str  # FITS_NOW or a CauseKind
    since: datetime | None


class RequestRoom(Struct, frozen=True):
    """The devices for one request of a shape."""

    request: str
    matching: int  # free or not
    free: int
    stranded: int | None  # None: not known, as more claims of the shape fit than were tried


class ShapeRoom(Struct, frozen=True):
    """How many more claims of a shape get devices."""

    shape: str
    claims: int
    is_more: bool  # no more were tried
    requests: tuple[RequestRoom, ...] = ()


class Figures(Struct, frozen=True):
    """The counts."""

    devices: Mapping[CountKey, StateCounts] = {}  # by node, or a word for several, and driver
    classes: Mapping[str, StateCounts] = {}  # a device counts for each class that selects it
    invalid_classes: frozenset[str] = frozenset()  # their selectors cannot be compiled
    waiting: tuple[WaitingPod, ...] = ()
    claims: Mapping[ClaimState, tuple[datetime, ...]] = {}  # since when, oldest first
    shapes: tuple[ShapeRoom, ...] = ()
    shapes_left_out: int = 0
