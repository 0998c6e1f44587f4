"""What a driver is: three methods, and a name.

    class Blinkers(Driver):
        name = "blinker.example.com"

        def devices(self):
            return [Device(name="red"), Device(name="green")]

        def prepare(self, claim):
            for device in claim.devices:
                yield Prepared(device, ContainerEdits(env=(f"BLINKER={device.name}",)))

        def unprepare(self, claim):
            pass

Everything else is done for it: sockets, registration, slices, CDI files, restarts. Methods may be
async; those that are not run in a thread, so they may wait. They are called one at a time unless
the driver says that it can do more. Values are checked when they are made: a wrong one raises
TypeError or ValueError where it is written.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from enum import Enum
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import astuple

from mooring.api.cdi import CdiId, ContainerEdits
from mooring.api.checked_structs import Checked
from mooring.api.nodeselector import NodeSelector
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    CounterSet,
    Device,
    DeviceAttribute,
    NetworkDeviceData,
    ResourceClaim,
)
from mooring.driver.errors import DriverError
from mooring.hardware.attributes import Form

LOG = logging.getLogger(__name__)


class Pool(Struct, frozen=True, metaclass=Checked):
    """Devices that are published together; cut into slices as their limits ask."""

    name: str = ""  # empty: the node's name
    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    generation: int = 0  # only if the driver counts itself
    # Where the devices are, for drivers that are not on one node; without any: on this node.
    node_selector: NodeSelector | None = None
    all_nodes: bool = False


Inventory = Iterable[Device] | Iterable[Pool]  # devices alone are those of one pool


class AllocatedDevice(Struct, frozen=True, metaclass=Checked):
    """A device that a claim has."""

    request: str  # with its subrequest, if it has one: `gpu/large`
    pool: str
    name: str
    share_id: str = ""
    consumed: dict[str, Quantity] = field(default_factory=dict)
    has_admin_access: bool = False
    configs: tuple[Any, ...] = ()  # parameters for this driver and request, class before claim
    published: Device | None = None  # as it was published, if it still is

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other devices of its claim."""
        return self.request, self.pool, self.name, self.share_id

    @property
    def base_request(self) -> str:
        """The request without its subrequest."""
        return self.request.partition("/")[0]


class ClaimName(Struct, frozen=True, metaclass=Checked):
    """Which claim; all that is known when it is taken back."""

    uid: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Claim(ClaimName, frozen=True):
    """A claim with the devices that it has of this driver."""

    devices: tuple[AllocatedDevice, ...] = ()
    value: ResourceClaim | None = None  # as the server has it


class Prepared(Struct, frozen=True, metaclass=Checked):
    """One device made ready, and what containers that use it get."""

    device: AllocatedDevice
    edits: ContainerEdits = ContainerEdits()  # become a CDI device of this claim
    cdi_ids: tuple[str, ...] = ()  # of specs that the driver, or somebody else, wrote
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)  # for its metadata
    network_data: NetworkDeviceData | None = None

    def faults(self) -> Iterator[str]:
        """Yield what the node, or a reader of the metadata, would not understand."""
        for index, text in enumerate(self.cdi_ids):
            try:
                CdiId.parse(text)
            except ValueError as error:
                yield f"cdi_ids[{index}]: {error}"
        for name, attribute in self.attributes.items():
            count = sum(value is not None for value in astuple(attribute))
            if count != 1:
                yield f"attributes[{name[:64]!r}]: exactly one value must be set, not {count}"


class Health(Enum):
    """How a device is."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class DeviceHealth(Struct, frozen=True, metaclass=Checked):
    """What is known of a device's health."""

    device: str
    health: Health
    message: str = ""
    pool: str = ""  # empty: the node's name
    timeout_s: int = 0  # how long this holds without another word; 0: the node's default

    def faults(self) -> Iterator[str]:
        """Yield what the node would not understand."""
        if not self.device:
            yield "device: it is missing; write the name of a device that is published"
        if self.timeout_s < 0:
            yield f"timeout_s: {self.timeout_s} must be 0 or more"


class PrepareError(DriverError):
    """A claim that cannot be prepared; the text is told to users of its pod."""


class ResultError(PrepareError):
    """What `prepare` returned cannot be used: the driver has a bug."""


class Driver(ABC):
    """Base of drivers. See `mooring.driver.run` for how one becomes a program."""

    name: ClassVar[str]
    serialize: ClassVar[bool] = True  # one claim after the other
    # Whether claims that are prepared already are told from memory. A driver that wants to look
    # again each time says no, and `prepare` is called for them, too.
    remembers: ClassVar[bool] = True

    needs_node: ClassVar[bool] = True  # False: it only publishes, for several nodes

    # Set before anything is asked of the driver.
    node_name: str = ""
    numa_form: Form = Form.SCALAR  # how the operator wants numaNode

    _republish: Callable[[], None] | None = None

    @abstractmethod
    def devices(self) -> Inventory | Awaitable[Inventory]:
        """Return what there is now; asked again when the driver says `republish`.

        It is asked before the node is told of the driver. A driver that raises then, or returns
        what cannot be published, does not start. Later, what it had stays published, and it is
        asked again after a while.
        """

    @abstractmethod
    def prepare(self, claim: Claim) -> Iterable[Prepared] | Awaitable[Iterable[Prepared]]:
        """Make the devices of a claim ready, or raise PrepareError. It may be asked again."""

    @abstractmethod
    def unprepare(self, claim: ClaimName) -> Awaitable[None] | None:
        """Undo it; for a claim that is not known there is nothing to do."""

    def restored(  # noqa: B027  # not every driver needs it
        self, claim: ClaimName, prepared: Iterable[Prepared]
    ) -> None:
        """Called at the start, before all else, for each claim that is prepared already."""

    def health(self) -> AsyncIterator[Iterable[DeviceHealth]] | None:
        """Yield how devices are, all that changed each time; None: this is not known."""
        return None

    async def started(self) -> None:  # noqa: B027  # not every driver needs it
        """Called once everything is served; a place to start watching hardware."""

    async def stopped(self) -> None:  # noqa: B027
        """Called at the end."""

    def republish(self) -> None:
        """Have `devices` asked again soon; from any thread, at any time."""
        if self._republish is not None:
            self._republish()

    def report(self, error: Exception) -> None:
        """Take note of what went wrong and goes on being tried: slices, registration, health.

        The cause of an error is what a method of the driver raised; its traceback is logged.
        """
        LOG.error("%s", error, exc_info=error.__cause__)
