"""The garbage collector of a program that runs for long."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

YOUNG_MAX = 20_000  # objects made and not freed before a look at the young ones
ROUNDS_BETWEEN = (20, 100)  # looks at the young before one at the middle-aged, and at the old
_M_ARENA_MAX, ARENAS_MAX = -8, 2


def calm_collector() -> None:
    """Look for cycles rarely, and not among what is there by now: it stays.

    What a request leaves behind is freed without the collector, which looks in vain at all that a
    server keeps; that took up to a sixth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *ROUNDS_BETWEEN)


def few_arenas() -> None:
    """Have all threads take memory from the same places, where the C library can.

    glibc gives each thread places of its own, and what is free there is lost to the others: a
    program with some threads grows to twice the size.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS_MAX)


def clean_up() -> None:
    """Free what is in cycles and has grown old, and give memory back to the machine."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def without_collector() -> Iterator[None]:
    """Look for no garbage while much is read that stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
