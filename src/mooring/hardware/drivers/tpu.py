"""tpu.google.com (kubernetes-sigs/dra-driver-google-tpu): TPU chips.

The driver publishes none of the standard attributes.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.attributes import text, whole
from mooring.hardware.board import PciDevice, Tpu
from mooring.hardware.machine import Machine, Sheet

DRIVER = "tpu.google.com"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield all chips."""
    found = list(machine.devices(Tpu))
    yield Sheet(
        tuple(_device(machine, index, len(found), *each) for index, each in enumerate(found))
    )


def _device(machine: Machine, index: int, count: int, device: PciDevice, model: Tpu) -> Device:
    return Device(
        name=str(index),  # as /dev/vfio numbers it
        attributes={
            "index": whole(index),
            "uuid": text(machine.uuid(device.address)),
            "tpuGen": text(model.generation),
            "brand": text("Google"),
            "accelerator": text(model.accelerator),
            "chipCount": whole(count),
            "topology": text(model.topology),
        },
    )
