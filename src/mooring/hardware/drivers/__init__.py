"""The drivers, as far as what they publish: one module each, under the names that they use.

Each has a DRIVER and `sheets(machine)`. Names of attributes are those of the drivers' sources and
of the table "Current Driver Attribute Names" of KEP-6072; the standard attributes stand beside
them, as the KEP asks for. A device is published by one driver only.
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
