"""What each driver publishes on a machine, as a function from the machine to its sheets.

Attribute names are those of the drivers' sources and of the table "Current Driver Attribute Names"
in KEP-6072; the standard attributes are published beside them, as the KEP requires. Only one driver
publishes a device. To add a driver, write its function and list it in `DRIVERS`.

cpu           dra.cpu: CPUs in groups that pods share, or one by one
memory        dra.memory: memory and huge pages
dranet        dra.net: whole network interfaces
sriov         virtual functions of network interfaces
nvme          dra.nvme: disks
nvidia_gpu    gpu.nvidia.com: GPUs, partitions and VFIO; compute-domain.nvidia.com
accelerators  gpu.amd.com, gpu.example.com and tpu.google.com
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moorage.hardware.drivers import accelerators, cpu, dranet, memory, nvidia_gpu, nvme, sriov
from moorage.hardware.machine import Machine, Sheet

Publish = Callable[[Machine], Iterable[Sheet]]

# Sorted by name: the order in which a machine's slices are published.
DRIVERS: dict[str, Publish] = {
    nvidia_gpu.COMPUTE_DOMAIN: nvidia_gpu.compute_domain_sheets,
    cpu.DRIVER: cpu.sheets,
    memory.DRIVER: memory.sheets,
    dranet.DRIVER: dranet.sheets,
    nvme.DRIVER: nvme.sheets,
    accelerators.AMD_GPU: accelerators.amd_gpu_sheets,
    accelerators.EXAMPLE_GPU: accelerators.example_gpu_sheets,
    nvidia_gpu.DRIVER: nvidia_gpu.sheets,
    sriov.DRIVER: sriov.sheets,
    accelerators.TPU: accelerators.tpu_sheets,
}
