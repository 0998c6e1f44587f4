"""Faults of reading objects.

ApiError (a ValueError)
├── DecodeError      an object whose JSON does not fit its kind
│   └── ProtobufError  bytes that are not an object in protobuf, or an object without that form
├── DocumentError    text that is not YAML or JSON, or is over a limit
├── QuantityError    text that is not a quantity
├── VersionError     text that is not a semantic version
└── GateError        feature gates that cannot be set like this
"""

from __future__ import annotations

from moorage.api.field_path import Segment
from moorage.kit.errors import MoorageError


class ApiError(MoorageError, ValueError):
    """Input that cannot be read; the message gives place and fact."""


class DecodeError(ApiError):
    """An object whose JSON does not fit its kind; `place` is the path of what does not."""

    def __init__(self, message: str, place: tuple[Segment, ...] = ()) -> None:
        super().__init__(message)
        self.place = place


class ProtobufError(DecodeError):
    """Bytes that are not an object in protobuf, or an object that has no such form."""


class DocumentError(ApiError):
    """Text that is not YAML or JSON, or is over a limit."""


class QuantityError(ApiError):
    """Text that is not a quantity."""


class VersionError(ApiError):
    """Text that is not a semantic version."""


class GateError(ApiError):
    """Feature gates that cannot be set like this."""
