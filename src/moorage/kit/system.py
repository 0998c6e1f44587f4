"""What differs between operating systems: which one a program needs, and signals that stop it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from enum import Enum
from typing import Final

_NAMES: Final = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}
_WINDOWS: Final = "win32"
_STOP: Final = (signal.SIGTERM, signal.SIGINT)


class System(Enum):
    """The operating systems that a program needs."""

    LINUX = "Linux"  # nodes and their devices: namespaces, cgroups, sysfs
    POSIX = "Linux or macOS"  # servers with a folder: locks, processes, permissions


def missing_system(needed: System) -> str:
    """Return what is missing, `needs Linux, and this is macOS`; empty if nothing is."""
    here: str = sys.platform  # else type checkers take the system that they run on for granted
    is_met = here == "linux" if needed is System.LINUX else here != _WINDOWS
    if is_met:
        return ""
    remedy = ": run it in WSL" if here == _WINDOWS else ""
    return f"needs {needed.value}, and this is {_NAMES.get(here, here)}{remedy}"


def on_stop(call: Callable[[], object]) -> None:
    """Call back in the running loop when a signal asks the program to stop."""
    loop = asyncio.get_running_loop()
    for number in _STOP:
        try:
            loop.add_signal_handler(number, call)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
