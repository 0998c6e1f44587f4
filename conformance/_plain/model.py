"""The data types of the plain allocator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CounterSet,
    Device,
    DeviceClass,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceSlice,
)

Amounts = dict[str, Quantity]


class Failure(Exception):  # noqa: N818 - an answer, not an error
    """The attempt was given up with an error; other nodes may be tried if it is node-only."""

    def __init__(self, message: str, *, node_only: bool = False) -> None:
        super().__init__(message)
        self.node_only = node_only


class DeviceId(NamedTuple):
    """The name of a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(eq=False)
class Pool:
    """The slices of a pool in its newest generation."""

    driver: str
    name: str
    here: list[ResourceSlice] = field(default_factory=list)  # device slices for this node
    elsewhere: list[ResourceSlice] = field(default_factory=list)
    counter_sets: dict[str, CounterSet] = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    def candidates(self, slices: list[ResourceSlice]) -> list[Candidate]:
        """Return the devices of some slices of the pool, in order."""
        return [
            Candidate(DeviceId(self.driver, self.name, device.name), device, slice_, self)
            for slice_ in slices
            for device in slice_.spec.devices or ()
        ]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A device that the node can see."""

    id: DeviceId
    device: Device
    slice: ResourceSlice
    pool: Pool


@dataclass(eq=False)
class Choice:
    """A request, or one alternative of a request, that was checked."""

    name: str
    parent: str | None  # the request, if this is an alternative
    ask: ExactDeviceRequest | DeviceSubRequest
    class_: DeviceClass
    everything: list[Candidate] | None = None  # all devices that match, for mode All

    @property
    def full_name(self) -> str:
        """The name that results use."""
        return self.name if self.parent is None else f"{self.parent}/{self.name}"

    @property
    def names(self) -> set[str]:
        """The names by which constraints and configurations mean it."""
        return {self.full_name, self.name if self.parent is None else self.parent}

    @property
    def count(self) -> int:
        """How many devices it takes."""
        return self.ask.count if self.everything is None else len(self.everything)

    @property
    def is_admin(self) -> bool:
        """Whether it looks at devices that others may be using."""
        return isinstance(self.ask, ExactDeviceRequest) and bool(self.ask.admin_access)


@dataclass(frozen=True, eq=False)
class Taking:
    """A device, or a share of one, given to a choice."""

    claim: int  # its number
    choice: Choice
    candidate: Candidate
    consumed: Amounts | None  # by a share; None if the device is taken whole
    is_charged: bool  # whether its device's counters are charged for this taking


@dataclass(frozen=True)
class Allocated:
    """What other claims have already."""

    whole: frozenset[DeviceId]
    shares: dict[DeviceId, list[Amounts]]

    def __contains__(self, device: DeviceId) -> bool:
        return device in self.whole or device in self.shares
