"""A board: sockets, NUMA nodes, PCIe roots and the devices in it, each fact with its source.

A part has a source, or it is assumed; single fields of a part with a source may be assumed.

# model: a type of device that can be plugged in, with the facts that drivers publish
# machine: one computer with this board; a rack has several
# bridges: the PCI bridges and switches between a root and a device, from the root on
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from moorage.hardware.numbers import PciAddress, parse_cpu_list

# --- models ---------------------------------------------------------------------------------------


class Sourced(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Facts with the name of their source; without one they are assumed."""

    source: str = ""
    assumed: bool | tuple[str, ...] = False  # all, or these fields

    @property
    def assumed_fields(self) -> tuple[str, ...]:
        """The fields without a source."""
        if isinstance(self.assumed, tuple):
            return self.assumed
        own = (name for name in self.__struct_fields__ if name not in ("source", "assumed"))
        return tuple(own) if self.assumed else ()


class PciModel(Sourced, frozen=True, tag_field="sort"):
    """A device with its vendor's name and ids."""

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


# --- boards ---------------------------------------------------------------------------------------


class NumaNode(Struct, frozen=True, forbid_unknown_fields=True):
    """Memory and the CPUs next to it."""

    id: int
    socket: int
    cpus: str  # as the kernel lists them: 0-35,288-323
    memory: str

    @property
    def cpu_ids(self) -> tuple[int, ...]:
        """The CPUs by number."""
        return parse_cpu_list(self.cpus)


class Numa(Sourced, frozen=True):
    """The NUMA nodes, and how far each is from each (ACPI SLIT)."""

    nodes: tuple[NumaNode, ...]
    distances: tuple[tuple[int, ...], ...]


class Cpu(Sourced, frozen=True):
    """The processors in the sockets."""

    model: str
    threads_per_core: int


class Pcie(Sourced, frozen=True):
    """The PCIe roots and the NUMA node of each; -1 is none."""

    roots: dict[str, int]


class PciDevice(Sourced, frozen=True):
    """A device on PCI."""

    model: str
    address: str
    root: str
    bridges: tuple[str, ...] = ()
    virtual_functions: int = 0
    first_virtual_function: str = ""

    def virtual_addresses(self) -> Iterator[PciAddress]:
        """Yield the addresses of the virtual functions."""
        for index in range(self.virtual_functions):
            yield PciAddress.parse(self.first_virtual_function).plus(index)


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """How the devices of a board are used."""

    mig: bool = False  # NVIDIA GPUs may be partitioned
    vfio: bool = False  # NVIDIA GPUs are passed to virtual machines
    sriov: bool = False  # NICs are allocated as virtual functions, if they have any
    compute_domains: bool = False  # GPUs share memory over NVLink across machines


class Board(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A board as its profile describes it."""

    title: str
    summary: str
    aliases: tuple[str, ...] = ()
    machines: int = 1
    architecture: str = "amd64"
    sources: dict[str, str]
    cpu: Cpu
    numa: Numa
    pcie: Pcie
    devices: tuple[PciDevice, ...]
    options: Options = Options()
    labels: dict[str, str] = {}

    @property
    def sockets(self) -> tuple[int, ...]:
        """The sockets by number."""
        return tuple(sorted({node.socket for node in self.numa.nodes}))

    def parts(self) -> Iterator[tuple[str, Sourced]]:
        """Yield every part with a source, by its path in the profile."""
        yield from (("cpu", self.cpu), ("numa", self.numa), ("pcie", self.pcie))
        for index, device in enumerate(self.devices):
            yield f"devices[{index}]", device


class Fact(NamedTuple):
    """The source of a part of the board, or of a model."""

    part: str
    source: str  # empty: everything is assumed
    assumed: tuple[str, ...]  # fields that the source does not give


class Profile(Struct, frozen=True):
    """A board by its name, with the models of its devices."""

    name: str
    board: Board
    models: dict[str, Model]
    model_sources: dict[str, str]

    def devices(self) -> Iterator[tuple[PciDevice, Model]]:
        """Yield every device with its model, in the order of the profile."""
        for device in self.board.devices:
            yield device, self.models[device.model]

    def facts(self) -> Iterator[Fact]:
        """Yield the source of every part and model."""
        board = self.board
        for name, part in (("cpu", board.cpu), ("numa", board.numa), ("pcie", board.pcie)):
            yield Fact(name, board.sources.get(part.source, ""), part.assumed_fields)
        for device in board.devices:
            yield Fact(device.address, board.sources.get(device.source, ""), device.assumed_fields)
        for name, model in self.models.items():
            yield Fact(name, self.model_sources.get(model.source, ""), model.assumed_fields)


def profile_tree(profile: Profile) -> dict[str, Any]:
    """Return a profile as `moor profiles -o json` prints it in a list."""
    board = profile.board
    return {
        "name": profile.name,
        "aliases": board.aliases,
        "title": board.title,
        "summary": board.summary,
        "machines": board.machines,
        "sockets": len(board.sockets),
        "numaNodes": len(board.numa.nodes),
        "devices": len(board.devices),
    }
