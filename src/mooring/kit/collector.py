"""The garbage collector of a program that runs for long."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_MAX = 20_000  # objects made and not freed before a look at the young ones
ROUNDS_BETWEEN = (20, 100)  # looks at the young before one at the middle-aged, and at the old


def calm_collector() -> None:
    """Look for cycles rarely, and not among what is there by now: it stays.

    What a request leaves behind is freed without the collector, which looks in vain at all that a
    server keeps; that took up to a sixth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *ROUNDS_BETWEEN)


@contextmanager
def without_collector() -> Iterator[None]:
    """Look for no garbage while much is read that stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
