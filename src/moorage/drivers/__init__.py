"""Drivers for the hardware of machines, each a small program on the SDK.

catalogue      entry point: drivers by name, and their options
cpu            dra.cpu: CPUs
memory         dra.memory: memory and huge pages
net            dra.net and the SR-IOV driver: network interfaces and virtual functions
nvme           dra.nvme: disks
nvidia         gpu.nvidia.com: GPUs
sim            the devices of any board, simulated
host           what drivers share: sysfs and proc, changes of devices, helpers to prepare claims
"""
