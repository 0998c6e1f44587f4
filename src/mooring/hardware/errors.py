"""Faults of hardware.

HardwareError
├── ProfileError        a profile that is not there, or whose file is not right
├── TreeError           something in a sysfs tree that is missing, too large or wrong
└── NoAttributeError    a standard attribute that a device does not have; do not publish it
"""

from __future__ import annotations


class HardwareError(ValueError):
    """Hardware that cannot be described; the message gives place and fact."""


class ProfileError(HardwareError):
    """A profile that is not there, or whose file is not right."""


class TreeError(HardwareError):
    """Something in a sysfs tree that cannot be read; `path` is where, `fact` is why."""

    def __init__(self, path: str, fact: str) -> None:
        super().__init__(f"{path}: {fact}")
        self.path = path
        self.fact = fact


class NoAttributeError(HardwareError):
    """A standard attribute that a device does not have; a driver leaves it out."""
