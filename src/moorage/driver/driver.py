"""The base class of drivers: three methods, and a name.

    class Blinkers(Driver):
        name = "blinker.example.com"

        def devices(self):
            return [Device(name="red"), Device(name="green")]

        def prepare(self, claim):
            for device in claim.devices:
                yield Prepared(device, ContainerEdits(env=(f"BLINKER={device.name}",)))

        def unprepare(self, claim):
            pass

The SDK does everything else: sockets, registration, slices, CDI files, restarts. Methods may be
async; others run in a thread, so they may block. They are called one at a time unless the driver
allows more. Values are checked when they are made: a wrong one raises TypeError or ValueError where
it is written. `self.pci_attributes(bus_id)` are the attributes that devices of all drivers share.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from enum import Enum
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import astuple

from moorage.api.cdi import CdiId, ContainerEdits
from moorage.api.core.placement import NodeSelector
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CounterSet,
    Device,
    DeviceAttribute,
    NetworkDeviceData,
    ResourceClaim,
)
from moorage.api.structs import Checked
from moorage.driver.errors import DriverError
from moorage.hardware import NumaNodeForm, SysfsTree, folder_tree
from moorage.hardware.attributes import DeviceLocation

LOG = logging.getLogger(__name__)


class Pool(Struct, frozen=True, metaclass=Checked):
    """Devices that are published together, divided into slices as needed."""

    name: str = ""  # empty: the node's name
    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    generation: int = 0  # only if the driver counts generations itself
    # Where the devices are, for drivers of several nodes; by default on this node.
    node_selector: NodeSelector | None = None
    all_nodes: bool = False


Inventory = Iterable[Device] | Iterable[Pool]  # devices alone form one pool


class AllocatedDevice(Struct, frozen=True, metaclass=Checked):
    """A device that a claim has."""

    request: str  # with its subrequest, if it has one: `gpu/large`
    pool: str
    name: str
    share_id: str = ""
    consumed: dict[str, Quantity] = field(default_factory=dict)
    has_admin_access: bool = False
    configs: tuple[Any, ...] = ()  # parameters for this driver and request, class before claim
    published: Device | None = None  # as published, if it still is

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identifies it within its claim."""
        return self.request, self.pool, self.name, self.share_id

    @property
    def base_request(self) -> str:
        """The request without its subrequest."""
        return self.request.partition("/")[0]


class ClaimName(Struct, frozen=True, metaclass=Checked):
    """The identity of a claim; all that is known when it is undone."""

    uid: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Claim(ClaimName, frozen=True):
    """A claim with its devices of this driver."""

    devices: tuple[AllocatedDevice, ...] = ()
    value: ResourceClaim | None = None  # as the API server has it


class Prepared(Struct, frozen=True, metaclass=Checked):
    """One prepared device, and what containers that use it get."""

    device: AllocatedDevice
    edits: ContainerEdits = ContainerEdits()  # become a CDI device of this claim
    cdi_ids: tuple[str, ...] = ()  # of other specs
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)  # for its metadata
    network_data: NetworkDeviceData | None = None

    def faults(self) -> Iterator[str]:
        """Yield the errors that the kubelet, or a reader of the metadata, would find."""
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
    """The health of a device."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class DeviceHealth(Struct, frozen=True, metaclass=Checked):
    """A report of a device's health."""

    device: str
    health: Health
    message: str = ""
    pool: str = ""  # empty: the node's name
    timeout_s: int = 0  # how long this holds without another report; 0: the kubelet's default

    def faults(self) -> Iterator[str]:
        """Yield the errors that the kubelet would find."""
        if not self.device:
            yield "device: it is missing; write the name of a device that is published"
        if self.timeout_s < 0:
            yield f"timeout_s: {self.timeout_s} must be 0 or more"


class PrepareError(DriverError):
    """A claim cannot be prepared; the text is shown to users of its pod."""


class ResultError(PrepareError):
    """The result of `prepare` cannot be used: the driver has a bug."""


class Driver(ABC):
    """Base of drivers. `moorage.driver.run` turns one into a program.

    A subclass sets `name`. It may set `serialize` to False, so that methods are called for several
    claims at once; `remembers` to False, so that `prepare` is called for prepared claims, too; and
    `needs_node` to False if it only publishes devices, for several nodes. Before any method is
    called, `node_name` and `numa_form` (how numaNode is to be published) are set.
    """

    name: ClassVar[str]
    serialize: ClassVar[bool] = True
    remembers: ClassVar[bool] = True
    needs_node: ClassVar[bool] = True

    node_name: str = ""
    numa_form: NumaNodeForm = NumaNodeForm.SCALAR

    _republish: Callable[[], None] | None = None

    @abstractmethod
    def devices(self) -> Inventory | Awaitable[Inventory]:
        """Return the current devices; called again after `republish`.

        It is called before the driver registers. A driver that raises then, or returns what cannot
        be published, does not start. Later, its slices stay unchanged, and it is called again after
        a while.
        """

    @abstractmethod
    def prepare(self, claim: Claim) -> Iterable[Prepared] | Awaitable[Iterable[Prepared]]:
        """Prepare the devices of a claim, or raise PrepareError. May be called repeatedly."""

    @abstractmethod
    def unprepare(self, claim: ClaimName) -> Awaitable[None] | None:
        """Undo `prepare`; do nothing for an unknown claim."""

    def restored(  # noqa: B027  # not every driver needs it
        self, claim: ClaimName, prepared: Iterable[Prepared]
    ) -> None:
        """Called at the start, before all else, for each claim that is prepared already."""

    def health(self) -> AsyncIterator[Iterable[DeviceHealth]] | None:
        """Yield reports of devices' health, all that changed each time; None: it is not known."""
        return None

    async def started(self) -> None:  # noqa: B027  # not every driver needs it
        """Called once everything is served; a place to start watching hardware."""

    async def stopped(self) -> None:  # noqa: B027
        """Called at the end."""

    def pci_attributes(
        self, bus_id: str, tree: SysfsTree | None = None
    ) -> dict[str, DeviceAttribute]:
        """Return pciBusID, pcieRoot and numaNode of a PCI device, as far as sysfs has them.

        numaNode has the form that the operator chose with `--numa-node`. Another tree than that of
        this machine serves tests.
        """
        return DeviceLocation(tree or folder_tree(), self.numa_form).pci_attributes(bus_id)

    def republish(self) -> None:
        """Have `devices` called again soon; from any thread, at any time."""
        if self._republish is not None:
            self._republish()

    def report(self, error: Exception) -> None:
        """Log an error that will be retried: slices, registration, health.

        The cause of an error is what a method of the driver raised; its traceback is logged.
        """
        LOG.error("%s", error, exc_info=error.__cause__)
