"""compute-domain.nvidia.com: the channel and the daemon of memory that trays share by NVLink."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.attributes import text, whole
from mooring.hardware.machine import Machine, Sheet

DRIVER = "compute-domain.nvidia.com"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield the default channel and the daemon, where the board has such memory."""
    if machine.board.options.compute_domains:
        yield Sheet(tuple(_device(type_) for type_ in ("channel", "daemon")))


def _device(type_: str) -> Device:
    return Device(name=f"{type_}-0", attributes={"type": text(type_), "id": whole(0)})
