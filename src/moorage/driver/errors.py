"""What can go wrong in a driver.

DriverError
├── PrepareError            a claim cannot be prepared; in `driver`, because drivers raise it
│   └── ResultError         the result of `prepare` cannot be used; in `driver`, too
├── MetadataWriteError      device metadata cannot be written; in `claim_files`
├── InventoryError          `devices` raised, or its result cannot be published
├── DroppedFieldsError      the server did not store all that was published
├── PublishingError         slices could not be written, and will be again
├── RegistrationError       the kubelet refused the driver
├── HealthError             the health of devices is no longer known
├── CheckpointError         what was prepared before is unknown
└── StartError              the driver cannot run: its folders, its sockets, another instance
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.kit.errors import MoorageError


class DriverError(MoorageError):
    """Something about a driver went wrong."""


class InventoryError(DriverError):
    """A driver does not list its devices, or lists what cannot be published.

    The text names method and fact; what the driver raised is the cause.
    """


class PublishingError(DriverError):
    """Slices could not be written; the driver tries again."""


class DroppedFieldsError(DriverError):
    """The server stored a slice without some fields: their feature gates are off."""

    def __init__(self, pool: str, index: int, gates: Sequence[str]) -> None:
        named = ", ".join(gates) or "unknown"
        super().__init__(
            f'pool "{pool}", slice #{index}: some fields were dropped by the apiserver, '
            f"probably because these features are disabled: {named}"
        )
        self.pool = pool
        self.index = index
        self.gates = tuple(gates)


class RegistrationError(DriverError):
    """The kubelet refused the driver, and said why."""


class HealthError(DriverError):
    """Reports of devices' health no longer hold; what the driver raised is the cause."""


class CheckpointError(DriverError):
    """A checkpoint cannot be read, or written."""


class StartError(DriverError):
    """The driver cannot run here, or not with these settings."""
