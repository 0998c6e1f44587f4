"""Profiles as files: one TOML file for each board, read strictly and checked.

A file with `base` inherits from another and replaces its top-level entries. Every error is a
ProfileError that names the file and the field; the checks find all errors of a board.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import msgspec

from moorage.api.errors import QuantityError
from moorage.api.quantity import Quantity
from moorage.api.semver import matches_api_rule
from moorage.hardware.attributes import NUMA_NODES_MAX
from moorage.hardware.board import Board, Model, NvidiaGpu, PciDevice, Profile, Sourced
from moorage.hardware.errors import ProfileError
from moorage.hardware.numbers import CPUS_MAX, PciAddress

T = TypeVar("T")

SUFFIX = ".toml"
MODELS = "models"
FILE_BYTES_MAX = 1 << 20
BASES_MAX = 4
BOARD_MACHINES_MAX = 1024
DEVICES_MAX = 1024
VIRTUAL_FUNCTIONS_MAX = 256
SLICES_MAX = 16  # of memory, in a GPU; each is a counter
LOCAL_DISTANCE = 10  # ACPI's distance of a node to itself
_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")


class ModelsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of all models."""

    sources: dict[str, str]
    models: dict[str, Model]


class ProfileFolder:
    """A folder of profiles and models."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = folder or files("moorage.hardware") / "profiles"

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted."""
        stems = (path.name.removesuffix(SUFFIX) for path in self._folder.iterdir())
        return sorted(stem for stem in stems if stem != MODELS)

    def read(self, name: str) -> Profile:
        """Return a profile, or raise ProfileError."""
        tree = self._tree(name, BASES_MAX)
        board = _decoded(name, tree, Board)
        file = self.models()
        faults = board_faults(board, file.models)
        if faults:
            raise ProfileError("\n".join(f"{name}{SUFFIX}: {fault}" for fault in faults))
        used = {device.model: file.models[device.model] for device in board.devices}
        return Profile(name, board, used, file.sources)

    def models(self) -> ModelsFile:
        """Return all models, or raise ProfileError."""
        found = _decoded(MODELS, self._toml(MODELS), ModelsFile)
        for name, model in found.models.items():
            fault = model_fault(model, found.sources)
            if fault:
                raise ProfileError(f"{MODELS}{SUFFIX}: models.{name}.{fault}")
        return found

    def _tree(self, name: str, bases_max: int) -> dict[str, Any]:
        tree = self._toml(name)
        base = tree.pop("base", None)
        if base is None:
            return tree
        if not isinstance(base, str) or not _is_name(base) or bases_max == 0:
            raise ProfileError(
                f"{name}{SUFFIX}: base: must name a profile that rests on few others"
            )
        below = self._tree(base, bases_max - 1)
        # A board does not inherit the aliases of its base.
        below.pop("aliases", None)
        sources = {**below.get("sources", {}), **tree.get("sources", {})}
        return {**below, **tree, "sources": sources}

    def _toml(self, name: str) -> dict[str, Any]:
        place = f"{name}{SUFFIX}"
        try:
            with (self._folder / place).open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise ProfileError(f"{place}: {error.strerror or error}") from None
        if len(data) > FILE_BYTES_MAX:
            raise ProfileError(f"{place}: larger than {FILE_BYTES_MAX:,} bytes")
        try:
            return tomllib.loads(data.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ProfileError(f"{place}: {error}") from None


def _is_name(text: str) -> bool:
    """Return whether a text names a file in the same folder, not a path."""
    return text.isprintable() and "/" not in text


def _decoded(name: str, tree: dict[str, Any], struct: type[T]) -> T:
    try:
        return msgspec.convert(tree, struct)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{name}{SUFFIX}: {error}") from None


# --- checks ---------------------------------------------------------------------------------------


def board_faults(board: Board, models: Mapping[str, Model]) -> list[str]:
    """Return all errors of a board, each with its field."""
    return [
        *_machine_faults(board),
        *_numa_faults(board),
        *_pcie_faults(board),
        *_device_faults(board, models),
        *_source_faults(board),
    ]


def source_fault(part: Sourced, sources: Mapping[str, str]) -> str:
    """Return the error of a part's source; empty if there is none."""
    if part.source and part.source not in sources:
        return f"source: {part.source!r} is not among the sources"
    if isinstance(part.assumed, tuple):
        unknown = [name for name in part.assumed if name not in part.__struct_fields__]
        if unknown:
            return f"assumed: there is no field {unknown[0]!r}"
    if part.source and part.assumed is True:
        return "assumed: must name fields where there is a source"
    if not part.source and part.assumed is not True:
        return "source: is missing; write assumed = true if there is none"
    return ""


def model_fault(model: Model, sources: Mapping[str, str]) -> str:
    """Return the error of a model; empty if there is none."""
    for name in ("memory", "size"):
        if not _is_quantity(getattr(model, name, "1")):
            return f"{name}: {getattr(model, name)!r} is not a quantity"
    for name in ("driver_version", "cuda_driver_version", "compute_capability"):
        if not matches_api_rule(getattr(model, name, "1.0.0")):
            return f"{name}: {getattr(model, name)!r} is not a version such as 1.0.0"
    if isinstance(model, NvidiaGpu):
        for index, profile in enumerate(model.mig):
            if not _is_quantity(profile.memory):
                return f"mig[{index}].memory: {profile.memory!r} is not a quantity"
            last = max((*profile.placements, 0)) + profile.memory_slices
            if profile.memory_slices < 1 or min((*profile.placements, 0)) < 0 or last > SLICES_MAX:
                return f"mig[{index}].placements: must be within {SLICES_MAX} memory slices"
    return source_fault(model, sources)


def _machine_faults(board: Board) -> Iterator[str]:
    if not 1 <= board.machines <= BOARD_MACHINES_MAX:
        yield f"machines: must be from 1 to {BOARD_MACHINES_MAX}"
    if not 1 <= board.cpu.threads_per_core <= 8:
        yield "cpu.threads_per_core: must be from 1 to 8"
    if len(board.devices) > DEVICES_MAX:
        yield f"devices: must be at most {DEVICES_MAX}"


def _source_faults(board: Board) -> Iterator[str]:
    for place, part in board.parts():
        fault = source_fault(part, board.sources)
        if fault:
            yield f"{place}.{fault}"


# --- NUMA ---------------------------------------------------------------------------------


def _numa_faults(board: Board) -> Iterator[str]:
    nodes = board.numa.nodes
    if [node.id for node in nodes] != list(range(len(nodes))) or not nodes:
        yield "numa.nodes: must have the ids 0, 1, 2 …"
    if len(nodes) > NUMA_NODES_MAX:
        yield f"numa.nodes: must be at most {NUMA_NODES_MAX}"
    for index, node in enumerate(nodes):
        if not _is_quantity(node.memory):
            yield f"numa.nodes[{index}].memory: {node.memory!r} is not a quantity"
    yield from _cpu_faults(board)
    yield from _distance_faults(board)


def _cpu_faults(board: Board) -> Iterator[str]:
    seen: set[int] = set()
    for index, node in enumerate(board.numa.nodes):
        try:
            cpus = node.cpu_ids
        except ValueError as error:
            yield f"numa.nodes[{index}].cpus: {error}"
            continue
        if len(cpus) % max(1, board.cpu.threads_per_core):
            yield f"numa.nodes[{index}].cpus: must be whole cores"
        if seen & set(cpus) or any(cpu >= CPUS_MAX for cpu in cpus):
            yield f"numa.nodes[{index}].cpus: must be below {CPUS_MAX} and in no other node"
        seen.update(cpus)


def _distance_faults(board: Board) -> Iterator[str]:
    size = len(board.numa.nodes)
    rows = board.numa.distances
    if len(rows) != size or any(len(row) != size for row in rows):
        yield f"numa.distances: must be {size} rows of {size} numbers"
        return
    for index, row in enumerate(rows):
        others = [each for other, each in enumerate(row) if other != index]
        if row[index] != LOCAL_DISTANCE or any(each <= LOCAL_DISTANCE for each in others):
            yield f"numa.distances[{index}]: must be 10 to the node itself and more to others"


def _is_quantity(text: str) -> bool:
    try:
        return Quantity.parse(text).sign > 0
    except QuantityError:
        return False


# --- PCI ----------------------------------------------------------------------------------


def _pcie_faults(board: Board) -> Iterator[str]:
    ids = {node.id for node in board.numa.nodes}
    for root, node in board.pcie.roots.items():
        if not _ROOT.fullmatch(root):
            yield f"pcie.roots: {root!r} is not a root such as pci0000:00"
        if node not in ids and node != -1:
            yield f"pcie.roots.{root}: there is no NUMA node {node}"


def _device_faults(board: Board, models: Mapping[str, Model]) -> Iterator[str]:
    seen: set[str] = set()
    for index, device in enumerate(board.devices):
        place = f"devices[{index}]"
        if device.model not in models:
            yield f"{place}.model: there is no model {device.model!r}"
        if device.root not in board.pcie.roots:
            yield f"{place}.root: {device.root!r} is not among the roots"
        fault = _address_fault(device)
        if fault:
            yield f"{place}.{fault}"
            continue
        own = [device.address, *map(str, device.virtual_addresses())]
        if seen.intersection(own):
            yield f"{place}.address: another device is at {device.address} or a virtual function's"
        seen.update(own)


def _address_fault(device: PciDevice) -> str:
    if not 0 <= device.virtual_functions <= VIRTUAL_FUNCTIONS_MAX:
        return f"virtual_functions: must be from 0 to {VIRTUAL_FUNCTIONS_MAX}"
    try:
        for address in (device.address, *device.bridges):
            PciAddress.parse(address)
        if any(address.bus > 0xFF for address in device.virtual_addresses()):
            return "virtual_functions: do not fit on the bus"
    except ValueError as error:
        return f"address: {error}"
    return ""
