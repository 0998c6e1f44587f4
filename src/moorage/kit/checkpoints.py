"""Work in threads that ends at its next checkpoint once nobody waits for it.

A thread cannot be stopped. So long work calls `checkpoint` for each object or so that it looks at,
and whoever lets it run gives an event that is set when its result is not wanted any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

_UNWANTED: ContextVar[Event | None] = ContextVar("unwanted", default=None)


class Unwanted(BaseException):
    """Nobody waits for the result; no fault, so that nothing that handles faults catches it."""


def checkpoint() -> None:
    """Raise Unwanted if nobody waits any more for what this thread does."""
    unwanted = _UNWANTED.get()
    if unwanted is not None and unwanted.is_set():
        raise Unwanted


@contextmanager
def ending_when(unwanted: Event) -> Iterator[None]:
    """End the work of a block at its next checkpoint after an event is set."""
    token = _UNWANTED.set(unwanted)
    try:
        yield
    finally:
        _UNWANTED.reset(token)
