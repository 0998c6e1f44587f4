"""Making and destroying partitions of GPUs. Asked twice, it is done once."""

from __future__ import annotations

from ctypes import byref

from mooring.driver.driver import PrepareError
from mooring.drivers.nvidia.gpus import FoundGpu, Handle, Library, Partition, read_partitions, said
from mooring.hardware.board import MigProfile

ENABLED, DISABLED = 1, 0


def made(library: Library, gpu: FoundGpu, profile: MigProfile, start: int) -> Partition:
    """Return a partition at a place; made, unless it is there. PrepareError: it cannot be."""
    existing = _at(library, gpu, profile, start)
    if existing is not None:
        return existing
    what = f"partition {profile.name} of GPU {gpu.minor} at slice {start}"
    try:
        _set_mode(library, gpu, ENABLED)
        _create(library, gpu.handle, profile, start)
    except library.NVMLError as error:
        raise PrepareError(f"{what} cannot be made: {said(error)}") from None
    created = _at(library, gpu, profile, start)
    if created is None:
        raise PrepareError(f"{what} was made, and is not there")
    return created


def destroyed(library: Library, gpu: FoundGpu, profile: MigProfile, start: int) -> None:
    """Destroy a partition, if it is there; PrepareError: it is still used."""
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
            f"partition {profile.name} of GPU {gpu.minor} cannot be destroyed: {said(error)}"
        ) from None


def whole(library: Library, gpu: FoundGpu) -> None:
    """Have a GPU without partitions, or raise PrepareError."""
    if not gpu.is_mig_enabled:
        return
    if any(read_partitions(library, gpu.handle, gpu.model.mig)):
        raise PrepareError(f"GPU {gpu.minor} has partitions, and is wanted whole")
    try:
        _set_mode(library, gpu, DISABLED)
    except library.NVMLError as error:
        raise PrepareError(f"GPU {gpu.minor} cannot be made whole: {said(error)}") from None


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
    """Make a GPU instance, and one compute instance that has all of it; or neither."""
    place = library.c_nvmlGpuInstancePlacement_t(start, profile.memory_slices)
    instance = library.nvmlDeviceCreateGpuInstanceWithPlacement(handle, profile.id, byref(place))
    try:
        library.nvmlGpuInstanceCreateComputeInstance(instance, _largest(library, instance))
    except library.NVMLError:
        library.nvmlGpuInstanceDestroy(instance)
        raise


def _largest(library: Library, instance: Handle) -> int:
    """Return the profile of compute instances that has most slices: all of the GPU instance."""
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
