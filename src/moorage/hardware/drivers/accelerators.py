"""Accelerators that are published whole, one device each.

gpu.amd.com       ROCm/k8s-gpu-dra-driver
gpu.example.com   kubernetes-sigs/dra-example-driver, without standard attributes
tpu.google.com    kubernetes-sigs/dra-driver-google-tpu, without standard attributes
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.resource.v1 import Device
from moorage.hardware.attributes import amount, text, version, whole
from moorage.hardware.board import AmdGpu, ExampleGpu, PciDevice, Tpu
from moorage.hardware.machine import Machine, Sheet

AMD_GPU = "gpu.amd.com"
EXAMPLE_GPU = "gpu.example.com"
TPU = "tpu.google.com"
FIRST_RENDER_INDEX = 128  # of /dev/dri/renderD128
RENDER_INDEX_STEP = 8  # a GPU reserves indexes for eight partitions
FIRST_CARD_INDEX = 1  # the first is the management controller's


def amd_gpu_sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield all AMD GPUs."""
    found = enumerate(machine.devices(AmdGpu))
    yield Sheet(tuple(_amd_gpu(machine, index, *each) for index, each in found))


def _amd_gpu(machine: Machine, index: int, device: PciDevice, model: AmdGpu) -> Device:
    card = FIRST_CARD_INDEX + index * RENDER_INDEX_STEP
    render = FIRST_RENDER_INDEX + index * RENDER_INDEX_STEP
    node = machine.scalar_numa_node(device.address)
    return Device(
        name=f"gpu-{card}-{render}",
        attributes={
            **machine.pci_attributes(device.address),
            **({} if node is None else {"numaNode": whole(node)}),
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


def example_gpu_sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield the GPUs of examples."""
    found = enumerate(machine.devices(ExampleGpu))
    yield Sheet(tuple(_example_gpu(machine, index, *each) for index, each in found))


def _example_gpu(machine: Machine, index: int, device: PciDevice, model: ExampleGpu) -> Device:
    return Device(
        name=f"gpu-{index}",
        attributes={
            "type": text("gpu"),  # the class of Kubernetes' documentation asks for it
            "index": whole(index),
            "uuid": text(f"gpu-{machine.uuid(device.address)}"),
            "model": text(model.product),
            "driverVersion": version(model.driver_version),
        },
        capacity={"memory": amount(model.memory), "compute": amount(model.compute)},
    )


def tpu_sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield all TPU chips."""
    found = list(machine.devices(Tpu))
    yield Sheet(tuple(_tpu(machine, index, len(found), *each) for index, each in enumerate(found)))


def _tpu(machine: Machine, index: int, count: int, device: PciDevice, model: Tpu) -> Device:
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
