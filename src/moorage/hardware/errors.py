"""Errors of hardware.

HardwareError
├── ProfileError        a profile does not exist, or its file is invalid
├── TreeError           an entry of a sysfs tree is missing, too large or invalid
└── NoAttributeError    a device does not have a standard attribute; do not publish it
"""

from __future__ import annotations

from moorage.kit.errors import MoorageError


class HardwareError(MoorageError, ValueError):
    """Hardware cannot be described; the message has place and fact."""


class ProfileError(HardwareError):
    """A profile does not exist, or its file is invalid."""


class TreeError(HardwareError):
    """An entry of a sysfs tree cannot be read; `fact` says why."""

    def __init__(self, path: str, fact: str) -> None:
        super().__init__(f"{path}: {fact}")
        self.path = path
        self.fact = fact


class NoAttributeError(HardwareError):
    """A device does not have a standard attribute; its driver leaves it out."""
