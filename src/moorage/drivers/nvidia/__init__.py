"""gpu.nvidia.com: GPUs of NVIDIA, through NVML.

driver   publishes GPUs and partitions, and prepares them
gpus     the GPUs that NVML reports, and their partitions (MIG)
cdi      the CDI edits for a GPU
health   errors of GPUs, as NVML reports them
"""

from moorage.drivers.nvidia.driver import NvidiaDriver

__all__ = ["NvidiaDriver"]
