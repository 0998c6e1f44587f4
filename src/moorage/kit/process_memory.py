"""Tunes the garbage collector and allocator for programs that run long or read much."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

YOUNG_MAX = 20_000  # objects made and not freed before the youngest generation is collected
YOUNG_MAX_ANSWERING = 100_000
ROUNDS_BETWEEN = (20, 100)  # collections of one generation before one of the next
_M_ARENA_MAX, ARENAS_MAX = -8, 2


def relax_garbage_collector() -> None:
    """Collect rarely, and never look at the objects that exist now: they stay.

    Reference counts free the objects of a request. The collector scanned everything a server
    keeps in vain, which took up to a sixth of its time.
    """
    gc.collect()
    gc.freeze()
    collect_rarely()


def collect_rarely() -> None:
    """Collect garbage rarely, for a command that reads a cluster, answers and exits.

    What it reads stays, and has no cycles: collecting took a third of the time of reading.
    """
    gc.set_threshold(YOUNG_MAX, *ROUNDS_BETWEEN)


def keep_what_exists() -> None:
    """Exempt all current objects from collection, and collect even more rarely.

    For a command that has read its input and now answers: looking at it again and again took a
    fifth of the time.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_MAX_ANSWERING, *ROUNDS_BETWEEN)


def may_leave_memory() -> bool:
    """Return whether a process has kept much, and nothing else runs in it."""
    return gc.get_freeze_count() > 0 and threading.active_count() == 1


def end_process(status: int) -> NoReturn:
    """End the process as Python would, but leave its memory to the system.

    Taking a million objects apart took a tenth of the time of a command.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def limit_malloc_arenas() -> None:
    """Let all threads share glibc's malloc arenas, where the C library is glibc.

    glibc gives each thread an arena of its own, whose free memory other threads cannot use: a
    program with some threads grows to twice the size.
    """
    import ctypes  # slow to import; most commands need it not

    with suppress(OSError, AttributeError, TypeError):  # TypeError: Windows
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS_MAX)


def release_memory() -> None:
    """Collect all generations and return free memory to the system."""
    import ctypes

    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # TypeError: Windows
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the collector while a program reads much that stays.

    Afterwards the next object that is made has everything looked at that was read, unless it was
    frozen before.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
