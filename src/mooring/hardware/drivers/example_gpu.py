"""gpu.example.com (kubernetes-sigs/dra-example-driver): the GPUs of examples.

The driver publishes none of the standard attributes.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.attributes import amount, text, version, whole
from mooring.hardware.board import ExampleGpu, PciDevice
from mooring.hardware.machine import Machine, Sheet

DRIVER = "gpu.example.com"


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield all GPUs."""
    found = enumerate(machine.devices(ExampleGpu))
    yield Sheet(tuple(_device(machine, index, *each) for index, each in found))


def _device(machine: Machine, index: int, device: PciDevice, model: ExampleGpu) -> Device:
    return Device(
        name=f"gpu-{index}",
        attributes={
            "index": whole(index),
            "uuid": text(f"gpu-{machine.uuid(device.address)}"),
            "model": text(model.product),
            "driverVersion": version(model.driver_version),
        },
        capacity={"memory": amount(model.memory), "compute": amount(model.compute)},
    )
