"""What one client may ask for at most."""

from __future__ import annotations

from typing import NamedTuple

WATCH_S = 1800  # how long a watch lasts that names no time


class Limits(NamedTuple):
    """How much one client may ask for, and how long it may take."""

    body_bytes_max: int = 3 * 1024 * 1024
    bodies_bytes_max: int = 256 * 1024 * 1024  # of all requests that are being read
    request_s: float = 60.0
    watches_max: int = 10_000
