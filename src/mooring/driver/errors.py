"""What can go wrong in a driver.

DriverError
├── PrepareError            a claim cannot be prepared; in `driver`, because drivers raise it
│   └── ResultError         what `prepare` returned cannot be used; in `driver`, too
├── InventoryError          what `devices` raised, or returned and cannot be published
├── DroppedFieldsError      the server did not store all that was published
├── PublishingError         the slices are not as they should be, for now
├── RegistrationError       the node refused the driver
├── HealthError             how devices are is not known any more
├── CheckpointError         what was prepared before cannot be known
└── StartError              the driver cannot run: its folders, its sockets, another instance
"""

from __future__ import annotations

from collections.abc import Sequence


class DriverError(Exception):
    """Something of a driver went wrong."""


class InventoryError(DriverError):
    """A driver does not say its devices, or says what cannot be published.

    The text names method and fact; what the driver raised is the cause.
    """


class PublishingError(DriverError):
    """Slices could not be written; it is tried again."""


class DroppedFieldsError(DriverError):
    """The server stored a slice without some fields: features of it are off there."""

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
    """The node refused the driver, and said why."""


class HealthError(DriverError):
    """What was said of devices' health holds no more; what the driver raised is the cause."""


class CheckpointError(DriverError):
    """A checkpoint cannot be read, or written."""


class StartError(DriverError):
    """The driver cannot run here, like this."""
