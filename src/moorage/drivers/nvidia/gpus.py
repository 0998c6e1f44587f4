"""The GPUs of a machine and their partitions, by NVML, NVIDIA's library.

`nvidia-ml-py` binds NVML. It is loaded when a driver first needs it; a fake in tests has the
functions, constants and structures of that module. A GPU or partition that cannot be read is left
out: it is gone, or broken. Creating or destroying a partition twice has no further effect.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from ctypes import byref, c_uint
from typing import Any, NamedTuple

from moorage.driver.driver import PrepareError
from moorage.hardware.attributes import tame
from moorage.hardware.board import MigProfile, NvidiaGpu
from moorage.hardware.numbers import PciAddress

LOG = logging.getLogger(__name__)

GPUS_MAX = 256
PLACEMENTS_MAX = 64
ENABLED, DISABLED = 1, 0  # modes of MIG
MIG_PREFIX = "MIG "  # of the names of profiles

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
BRANDS = {
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "Grid",
    5: "GeForce",
    6: "Titan",
    7: "NvidiaVApps",
    8: "NvidiaVPC",
    9: "NvidiaVCS",
    10: "NvidiaVWS",
    11: "NvidiaCloudGaming",
    12: "QuadroRTX",
    13: "NvidiaRTX",
    14: "Nvidia",
    15: "GeForceRTX",
    16: "TitanRTX",
}


class Partition(NamedTuple):
    """An existing partition."""

    profile: MigProfile
    start: int  # the first of its memory slices
    uuid: str
    gpu_instance: int
    compute_instance: int


class FoundGpu(NamedTuple):
    """A GPU of this machine."""

    handle: Handle
    minor: int  # of its device file
    uuid: str
    address: str
    model: NvidiaGpu
    is_mig_enabled: bool
    partitions: tuple[Partition, ...] = ()


def read_gpus(library: Library) -> list[FoundGpu]:
    """Return the GPUs that can be read, in the library's order."""
    try:
        count = library.nvmlDeviceGetCount()
    except library.NVMLError as error:
        LOG.warning("cannot count GPUs: %s", error_text(error))
        return []
    found = []
    for index in range(min(count, GPUS_MAX)):
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            found.append(read_gpu(library, handle))
        except (library.NVMLError, ValueError) as error:
            LOG.warning("cannot read GPU %d, it is left out: %s", index, error_text(error))
    return found


def read_gpu(library: Library, handle: Handle) -> FoundGpu:
    """Return one GPU, or raise NVMLError or ValueError."""
    info = library.nvmlDeviceGetPciInfo(handle)
    profiles = tuple(_profiles(library, handle))
    model = _model(library, handle, int(info.pciDeviceId), profiles)
    is_enabled = _is_mig_enabled(library, handle)
    return FoundGpu(
        handle=handle,
        minor=library.nvmlDeviceGetMinorNumber(handle),
        uuid=tame(as_text(library.nvmlDeviceGetUUID(handle))),
        address=pci_address(as_text(info.busId)),
        model=model,
        is_mig_enabled=is_enabled,
        partitions=tuple(read_partitions(library, handle, profiles)) if is_enabled else (),
    )


def read_partitions(
    library: Library, handle: Handle, profiles: tuple[MigProfile, ...]
) -> Iterator[Partition]:
    """Yield the partitions of a GPU with one compute instance that spans them."""
    by_id = {profile.id: profile for profile in profiles}
    for index in range(library.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            device = library.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            number = library.nvmlDeviceGetGpuInstanceId(device)
            instance = library.nvmlDeviceGetGpuInstanceById(handle, number)
            info = library.nvmlGpuInstanceGetInfo(instance)
            found = Partition(
                profile=by_id[info.profileId],
                start=info.placement.start,
                uuid=tame(as_text(library.nvmlDeviceGetUUID(device))),
                gpu_instance=number,
                compute_instance=library.nvmlDeviceGetComputeInstanceId(device),
            )
        except (library.NVMLError, KeyError):
            continue  # most numbers have no partition
        yield found


# --- facts --------------------------------------------------------------------------------


def _model(
    library: Library, handle: Handle, device_id: int, profiles: tuple[MigProfile, ...]
) -> NvidiaGpu:
    major, minor = library.nvmlDeviceGetCudaComputeCapability(handle)
    cuda = library.nvmlSystemGetCudaDriverVersion_v2()
    memory = library.nvmlDeviceGetMemoryInfo(handle).total
    return NvidiaGpu(
        product=tame(as_text(library.nvmlDeviceGetName(handle))),
        vendor_id=f"0x{device_id & 0xFFFF:04x}",
        device_id=f"0x{device_id >> 16:04x}",
        brand=BRANDS.get(library.nvmlDeviceGetBrand(handle), "Unknown"),
        architecture=ARCHITECTURES.get(library.nvmlDeviceGetArchitecture(handle), "Unknown"),
        compute_capability=f"{major}.{minor}.0",
        driver_version=semantic(as_text(library.nvmlSystemGetDriverVersion())),
        cuda_driver_version=f"{cuda // 1000}.{cuda % 1000 // 10}.0",
        memory=f"{memory // (1 << 20)}Mi",
        mig=profiles,
    )


def _profiles(library: Library, handle: Handle) -> Iterator[MigProfile]:
    """Yield the possible partition profiles of a GPU; most GPUs have none."""
    met: set[int] = set()
    for number in range(library.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = library.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=2)
            places = _placements(library, handle, info.id)
        except library.NVMLError:
            continue
        if not places or info.id in met:
            continue
        met.add(info.id)
        yield MigProfile(
            name=tame(as_text(info.name)).removeprefix(MIG_PREFIX) or f"{info.sliceCount}g",
            id=info.id,
            memory=f"{info.memorySizeMB}Mi",
            memory_slices=places[0][1],
            placements=tuple(start for start, _ in places),
            multiprocessors=info.multiprocessorCount,
            copy_engines=info.copyEngineCount,
            decoders=info.decoderCount,
            encoders=info.encoderCount,
            jpeg_engines=info.jpegCount,
            ofa_engines=info.ofaCount,
        )


def _placements(library: Library, handle: Handle, profile: int) -> list[tuple[int, int]]:
    """Return the placements of a profile: first memory slice, and number of slices."""
    count = c_uint(PLACEMENTS_MAX)
    places = (library.c_nvmlGpuInstancePlacement_t * PLACEMENTS_MAX)()
    library.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, places, byref(count))
    found = places[: min(count.value, PLACEMENTS_MAX)]
    return sorted({(place.start, place.size) for place in found})


def _is_mig_enabled(library: Library, handle: Handle) -> bool:
    try:
        current, _ = library.nvmlDeviceGetMigMode(handle)
    except library.NVMLError:
        return False
    return bool(current)


def pci_address(bus_id: str) -> str:
    """Return an address as in sysfs; NVML has domains of eight digits, in capitals."""
    text = bus_id.strip("\0 ").lower()
    domain, _, rest = text.partition(":")
    # A domain has four digits in sysfs, unless it needs more.
    shorter = domain[-4:] if domain[:-4].strip("0") == "" else domain
    return str(PciAddress.parse(f"{shorter}:{rest}"))


def semantic(version: str) -> str:
    """Return a version with three numbers without leading zeros, unlike 535.104.05."""
    parts = version.strip().split(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise ValueError(f"{version[:40]!r} is not a version")
    numbers = [str(int(part)) for part in parts]
    return ".".join([*numbers, "0", "0"][:3])


# --- partitions -----------------------------------------------------------------------------------


def created(library: Library, gpu: FoundGpu, profile: MigProfile, start: int) -> Partition:
    """Return a partition at a placement, created if necessary, or raise PrepareError."""
    existing = _at(library, gpu, profile, start)
    if existing is not None:
        return existing
    what = f"partition {profile.name} of GPU {gpu.minor} at slice {start}"
    try:
        _set_mode(library, gpu, ENABLED)
        _create(library, gpu.handle, profile, start)
    except library.NVMLError as error:
        raise PrepareError(f"{what} cannot be created: {error_text(error)}") from None
    partition = _at(library, gpu, profile, start)
    if partition is None:
        raise PrepareError(f"{what} was created, and does not exist")
    return partition


def destroyed(library: Library, gpu: FoundGpu, profile: MigProfile, start: int) -> None:
    """Destroy a partition, if it exists, or raise PrepareError."""
    existing = _at(library, gpu, profile, start)
    if existing is None:
        return
    try:
        instance = library.nvmlDeviceGetGpuInstanceById(gpu.handle, existing.gpu_instance)
        compute = library.nvmlGpuInstanceGetComputeInstanceById(instance, existing.compute_instance)
        library.nvmlComputeInstanceDestroy(compute)
        library.nvmlGpuInstanceDestroy(instance)
    except library.NVMLError as error:
        raise PrepareError(
            f"partition {profile.name} of GPU {gpu.minor} cannot be destroyed: {error_text(error)}"
        ) from None


def whole(library: Library, gpu: FoundGpu) -> None:
    """Make a GPU whole, or raise PrepareError."""
    if not gpu.is_mig_enabled:
        return
    if any(read_partitions(library, gpu.handle, gpu.model.mig)):
        raise PrepareError(f"GPU {gpu.minor} has partitions, and is requested whole")
    try:
        _set_mode(library, gpu, DISABLED)
    except library.NVMLError as error:
        raise PrepareError(f"GPU {gpu.minor} cannot be made whole: {error_text(error)}") from None


def _at(library: Library, gpu: FoundGpu, profile: MigProfile, start: int) -> Partition | None:
    try:
        found = list(read_partitions(library, gpu.handle, gpu.model.mig))
    except library.NVMLError:
        return None  # the GPU is whole
    same = (each for each in found if (each.profile.id, each.start) == (profile.id, start))
    return next(same, None)


def _set_mode(library: Library, gpu: FoundGpu, mode: int) -> None:
    current, _ = library.nvmlDeviceGetMigMode(gpu.handle)
    if current != mode:
        library.nvmlDeviceSetMigMode(gpu.handle, mode)


def _create(library: Library, handle: Handle, profile: MigProfile, start: int) -> None:
    """Create a GPU instance and one compute instance that spans it, or neither."""
    place = library.c_nvmlGpuInstancePlacement_t(start, profile.memory_slices)
    instance = library.nvmlDeviceCreateGpuInstanceWithPlacement(handle, profile.id, byref(place))
    try:
        library.nvmlGpuInstanceCreateComputeInstance(instance, _largest(library, instance))
    except library.NVMLError:
        library.nvmlGpuInstanceDestroy(instance)
        raise


def _largest(library: Library, instance: Handle) -> int:
    """Return the compute instance profile with the most slices: the whole GPU instance."""
    shared = library.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    found: list[tuple[int, int]] = []
    for number in range(library.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = library.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, shared)
        except library.NVMLError:
            continue
        found.append((info.sliceCount, info.id))
    if not found:
        raise library.NVMLError(library.NVML_ERROR_NOT_SUPPORTED)
    return max(found)[1]


# --- NVML -----------------------------------------------------------------------------------------

Library = Any  # the module pynvml, or a fake of it
Handle = Any  # of a GPU, or of an instance of it


class NoLibraryError(Exception):
    """NVML is not available; the text says why."""


def load_nvml() -> Library:
    """Load and start NVML, or raise NoLibraryError."""
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        raise NoLibraryError(
            "nvidia-ml-py is not installed; it comes with moorage[drivers]"
        ) from None
    return start_nvml(pynvml)


def start_nvml(library: Library) -> Library:
    """Start NVML, or raise NoLibraryError."""
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise NoLibraryError(f"no NVIDIA driver here ({error_text(error)})") from None
    return library


def error_text(error: Exception) -> str:
    """Return the text of an NVML error."""
    return str(error) or type(error).__name__


def as_text(value: str | bytes) -> str:
    """Return text from NVML; older bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
