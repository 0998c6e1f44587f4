"""gpu.amd.com (ROCm/k8s-gpu-dra-driver): whole GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.resource.v1 import Device
from mooring.hardware.attributes import Attributes, amount, text, version, whole
from mooring.hardware.board import AmdGpu, PciDevice
from mooring.hardware.machine import Machine, Sheet

DRIVER = "gpu.amd.com"
FIRST_RENDER_INDEX = 128  # of /dev/dri/renderD128
RENDER_INDEX_STEP = 8  # a GPU reserves indexes for eight partitions
FIRST_CARD_INDEX = 1  # the first is the management controller's


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield all GPUs."""
    found = enumerate(machine.devices(AmdGpu))
    yield Sheet(tuple(_device(machine, index, *each) for index, each in found))


def _device(machine: Machine, index: int, device: PciDevice, model: AmdGpu) -> Device:
    card = FIRST_CARD_INDEX + index * RENDER_INDEX_STEP
    render = FIRST_RENDER_INDEX + index * RENDER_INDEX_STEP
    return Device(
        name=f"gpu-{card}-{render}",
        attributes={
            **machine.pci_attributes(device.address),
            **_numa_node(machine, device),
            "type": text("amdgpu"),
            "pciAddr": text(device.address),
            "cardIndex": whole(card),
            "renderIndex": whole(render),
            "deviceID": text(model.device_id),
            "family": text(model.family),
            "productName": text(model.product),
            "driverVersion": version(model.driver_version),
            "driverSrcVersion": text(model.driver_source_version),
            "partitionProfile": text(model.partition_profile),
        },
        capacity={
            "memory": amount(model.memory),
            "computeUnits": amount(model.compute_units),
            "simdUnits": amount(model.simd_units),
        },
    )


def _numa_node(machine: Machine, device: PciDevice) -> Attributes:
    node = machine.scalar_numa_node(device.address)
    return {} if node is None else {"numaNode": whole(node)}
