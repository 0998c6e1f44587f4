"""What can be plugged into a board: one struct a sort of device, with what drivers tell of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Sourced(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Facts with their source, by its name in the file; without one they are assumed."""

    source: str = ""
    assumed: bool | tuple[str, ...] = False  # all, or these fields

    @property
    def assumed_fields(self) -> tuple[str, ...]:
        """The fields that no source gives."""
        if isinstance(self.assumed, tuple):
            return self.assumed
        own = (name for name in self.__struct_fields__ if name not in ("source", "assumed"))
        return tuple(own) if self.assumed else ()


class PciModel(Sourced, frozen=True, tag_field="sort"):
    """A device with a name and numbers of its maker."""

    product: str
    vendor_id: str
    device_id: str


class MigProfile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One size of partition of an NVIDIA GPU, and where it can be placed."""

    name: str
    id: int
    memory: str
    memory_slices: int
    placements: tuple[int, ...]
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int


class NvidiaGpu(PciModel, frozen=True, tag="nvidia-gpu"):
    """A GPU of NVIDIA."""

    brand: str
    architecture: str
    compute_capability: str
    driver_version: str
    cuda_driver_version: str
    memory: str
    mig: tuple[MigProfile, ...] = ()


class AmdGpu(PciModel, frozen=True, tag="amd-gpu"):
    """A GPU of AMD."""

    family: str
    driver_version: str
    driver_source_version: str
    partition_profile: str
    memory: str
    compute_units: int
    simd_units: int


class Nic(PciModel, frozen=True, kw_only=True, tag="nic"):
    """A network interface."""

    vendor: str
    virtual_device_id: str = ""
    link: Literal["ether", "infiniband"] = "ether"
    mtu: int
    rdma: bool


class Nvme(PciModel, frozen=True, tag="nvme"):
    """A disk on PCI."""

    size: str


class Tpu(PciModel, frozen=True, tag="tpu"):
    """A TPU chip of Google."""

    generation: str
    accelerator: str
    topology: str


class ExampleGpu(PciModel, frozen=True, tag="example-gpu"):
    """A GPU that exists in examples only."""

    driver_version: str
    memory: str
    compute: int


Model = NvidiaGpu | AmdGpu | Nic | Nvme | Tpu | ExampleGpu
PCI_CLASSES: dict[type, str] = {
    NvidiaGpu: "0x030200",
    AmdGpu: "0x120000",
    Nic: "0x020000",
    Nvme: "0x010802",
    Tpu: "0x120000",
    ExampleGpu: "0x030200",
}
