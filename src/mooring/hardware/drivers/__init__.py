"""What each driver publishes on a machine: one module per driver, so that one is easy to add.

Each has a DRIVER and `sheets(machine)`. Attribute names are those of the drivers' sources and of
the table "Current Driver Attribute Names" in KEP-6072; the standard attributes are published beside
them, as the KEP requires. Only one driver publishes a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.hardware.drivers import (
    amd_gpu,
    compute_domain,
    cpu,
    dranet,
    example_gpu,
    memory,
    nvidia_gpu,
    nvme,
    sriov,
    tpu,
)
from mooring.hardware.machine import Machine, Sheet

Publish = Callable[[Machine], Iterable[Sheet]]

_MODULES = (
    amd_gpu,
    compute_domain,
    cpu,
    dranet,
    example_gpu,
    memory,
    nvidia_gpu,
    nvme,
    sriov,
    tpu,
)

DRIVERS: dict[str, Publish] = dict(sorted((module.DRIVER, module.sheets) for module in _MODULES))
