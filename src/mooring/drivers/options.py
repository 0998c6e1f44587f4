"""What an operator decides of the drivers."""

from __future__ import annotations

from msgspec import Struct

from mooring.drivers.cpu import CpuSettings
from mooring.drivers.host import Host, host_at
from mooring.hardware.attributes import Form
from mooring.hardware.numbers import parse_cpu_list

INDIVIDUAL, GROUPED = "individual", "grouped"
BY_NODE, BY_SOCKET = "numanode", "socket"
STATIC, DYNAMIC = "static", "dynamic"


class OptionError(ValueError):
    """An option that cannot be; the text names it."""


class Options(Struct, frozen=True, kw_only=True):
    """Where drivers look, and how they give away what they find."""

    node_name: str = ""
    sysfs: str = "/sys"
    proc: str = "/proc"
    form: Form = Form.SCALAR
    cpu_device_mode: str = GROUPED
    group_by: str = BY_NODE
    reserved_cpus: str = ""
    has_sriov: bool = True  # virtual functions are given away by the SR-IOV driver
    mig: str = STATIC
    ignored_xids: tuple[int, ...] = ()
    profile: str = ""  # the board that `sim` has

    @property
    def host(self) -> Host:
        """The machine that drivers look at."""
        return host_at(self.sysfs, self.proc, self.form)

    @property
    def cpus(self) -> CpuSettings:
        """How CPUs are given away, or OptionError."""
        try:
            reserved = parse_cpu_list(self.reserved_cpus)
        except ValueError as error:
            raise OptionError(f"--reserved-cpus: {error}") from None
        if self.cpu_device_mode not in (INDIVIDUAL, GROUPED):
            raise OptionError(f"--cpu-device-mode: must be {INDIVIDUAL} or {GROUPED}")
        if self.group_by not in (BY_NODE, BY_SOCKET):
            raise OptionError(f"--group-by: must be {BY_NODE} or {BY_SOCKET}")
        is_individual = self.cpu_device_mode == INDIVIDUAL
        return CpuSettings(is_individual, self.group_by == BY_SOCKET, reserved)
