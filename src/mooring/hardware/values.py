"""The values that devices are published with, in few words."""

from __future__ import annotations

from mooring.api.quantity import Format, Quantity
from mooring.api.resource.v1 import DeviceAttribute, DeviceCapacity

Attributes = dict[str, DeviceAttribute]
Capacities = dict[str, DeviceCapacity]

TEXT_BYTES_MAX = 64  # of a string that is an attribute


def text(value: str) -> DeviceAttribute:
    """Return an attribute that is a string."""
    return DeviceAttribute(string_value=value)


def whole(value: int) -> DeviceAttribute:
    """Return an attribute that is an integer."""
    return DeviceAttribute(int_value=value)


def flag(value: bool) -> DeviceAttribute:
    """Return an attribute that is true or false."""
    return DeviceAttribute(bool_value=value)


def version(value: str) -> DeviceAttribute:
    """Return an attribute that is a semantic version."""
    return DeviceAttribute(version_value=value)


def amount(value: str | int) -> DeviceCapacity:
    """Return so much of a capacity."""
    return DeviceCapacity(value=Quantity.parse(str(value)))


def bytes_of(count: int) -> Quantity:
    """Return so many bytes, written in powers of two."""
    return Quantity.from_int(count, Format.BINARY_SI)


def tame(value: str) -> str:
    """Return a text of the machine as an attribute can have it: printable, and not too long."""
    shown = "".join(letter for letter in value.strip() if letter.isprintable())
    return shown.encode()[:TEXT_BYTES_MAX].decode(errors="ignore").strip()
