"""When something happens: a clock that never jumps for waiting, and the time of day for writing."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Moment(NamedTuple):
    """A point in time, on both clocks."""

    elapsed_s: float  # on a clock that only goes forward
    wall: datetime
