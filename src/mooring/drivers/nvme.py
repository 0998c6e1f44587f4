"""dra.nvme: the disks of this machine, each for one claim.

A disk that the machine uses has the attribute inUse and a taint: only a claim that tolerates the
taint gets it. A container gets the disk's device files, and their names:

    MOORING_DISKS_<uid>_<request>=/dev/nvme0n1
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.binding import variable
from mooring.api.cdi import ContainerEdits, DeviceNode
from mooring.api.resource.v1 import Device
from mooring.driver.driver import Claim, ClaimName, Prepared
from mooring.drivers.changes import WatchingDriver
from mooring.drivers.disks import disks_of
from mooring.drivers.given import gone, listed, of_request
from mooring.drivers.host import Host
from mooring.hardware.drivers.nvme import DRIVER, disk_device

VARIABLE = "MOORING_DISKS"


class NvmeDriver(WatchingDriver):
    """Gives whole disks away."""

    name = DRIVER
    subsystems = frozenset({"block", "nvme"})

    def __init__(self, host: Host) -> None:
        self._host = host

    def devices(self) -> list[Device]:
        """Return the disks that there are now."""
        return [disk_device(self._host.place, found.disk) for found in disks_of(self._host)]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Give containers the files of their disks."""
        nodes = {found.disk.name: found.nodes for found in disks_of(self._host)}
        for device in claim.devices:
            if device.name not in nodes:
                raise gone(device)
        for device in claim.devices:
            fellows = of_request(claim, device.request)
            paths = listed(path for each in fellows for path in nodes[each.name])
            env = (f"{variable(VARIABLE, claim.uid, device.request)}={paths}",)
            files = tuple(DeviceNode(path=path) for path in nodes[device.name])
            yield Prepared(device, ContainerEdits(env=env, device_nodes=files))

    def unprepare(self, claim: ClaimName) -> None:
        """Do nothing: what is on the disk is left as it is."""
