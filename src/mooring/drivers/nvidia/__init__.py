"""gpu.nvidia.com: GPUs of NVIDIA, through NVML."""

from mooring.drivers.nvidia.driver import NvidiaDriver

__all__ = ["NvidiaDriver"]
