"""NVML in memory: the functions of pynvml that drivers call, over GPUs that tests describe.

Constants, structures and errors are pynvml's own. A handle is the object itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml  # type: ignore[import-untyped]

from moorage.hardware.board import MigProfile

NOT_FOUND = pynvml.NVML_ERROR_NOT_FOUND


@dataclass(eq=False)
class FakeInstance:
    """A GPU instance with its compute instance."""

    gpu: FakeGpu
    id: int
    profile: MigProfile
    start: int
    compute: bool = False

    @property
    def uuid(self) -> str:
        return f"MIG-{self.gpu.minor}-{self.id}"

    @property
    def slices(self) -> range:
        return range(self.start, self.start + self.profile.memory_slices)


@dataclass(eq=False)
class FakeGpu:
    """A GPU, by default an H100 without partitions."""

    minor: int
    bus_id: str
    profiles: tuple[MigProfile, ...] = ()
    mig: bool = False
    is_lost: bool = False
    is_watchable: bool = True
    refuses_compute: bool = False
    instances: list[FakeInstance] = field(default_factory=list)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.minor}"


class FakeNvml:
    """What stands in for the module."""

    def __init__(self, gpus: Iterable[FakeGpu] = (), *, is_installed: bool = True) -> None:
        self.gpus = list(gpus)
        self.events: deque[Any] = deque()
        self.freed = 0
        self._is_installed = is_installed

    def __getattr__(self, name: str) -> Any:
        value = getattr(pynvml, name)
        assert not name.startswith("nvml") or not callable(value), f"{name} is not faked"
        return value

    # --- the machine ----------------------------------------------------------------------

    def nvmlInit(self) -> None:  # noqa: N802
        if not self._is_installed:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.86.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 12080

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        return self._alive(self.gpus[index])

    # --- a GPU ----------------------------------------------------------------------------

    def nvmlDeviceGetPciInfo(self, gpu: FakeGpu) -> Any:  # noqa: N802
        return SimpleNamespace(busId=self._alive(gpu).bus_id, pciDeviceId=0x233010DE)

    def nvmlDeviceGetMinorNumber(self, gpu: FakeGpu) -> int:  # noqa: N802
        return self._alive(gpu).minor

    def nvmlDeviceGetUUID(self, device: FakeGpu | FakeInstance) -> str:  # noqa: N802
        if isinstance(device, FakeGpu):
            self._alive(device)
        return device.uuid

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> bytes:  # noqa: N802
        return b"NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetBrand(self, gpu: FakeGpu) -> int:  # noqa: N802
        return int(pynvml.NVML_BRAND_NVIDIA)

    def nvmlDeviceGetArchitecture(self, gpu: FakeGpu) -> int:  # noqa: N802
        return int(pynvml.NVML_DEVICE_ARCH_HOPPER)

    def nvmlDeviceGetCudaComputeCapability(self, gpu: FakeGpu) -> tuple[int, int]:  # noqa: N802
        return 9, 0

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu) -> Any:  # noqa: N802
        return SimpleNamespace(total=81559 << 20)

    # --- partitions -----------------------------------------------------------------------

    def nvmlDeviceGetMigMode(self, gpu: FakeGpu) -> tuple[int, int]:  # noqa: N802
        if not gpu.profiles:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return int(gpu.mig), int(gpu.mig)

    def nvmlDeviceSetMigMode(self, gpu: FakeGpu, mode: int) -> int:  # noqa: N802
        assert not gpu.instances
        gpu.mig = bool(mode)
        return 0

    def nvmlDeviceGetGpuInstanceProfileInfo(  # noqa: N802
        self, gpu: FakeGpu, number: int, version: int
    ) -> Any:
        assert version == 2
        if number >= len(gpu.profiles):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        profile = gpu.profiles[number]
        return SimpleNamespace(
            id=profile.id,
            name=f"MIG {profile.name}".encode(),
            sliceCount=int(profile.name[0]),
            multiprocessorCount=profile.multiprocessors,
            copyEngineCount=profile.copy_engines,
            decoderCount=profile.decoders,
            encoderCount=profile.encoders,
            jpegCount=profile.jpeg_engines,
            ofaCount=profile.ofa_engines,
            memorySizeMB=int(profile.memory.removesuffix("Mi")),
        )

    def nvmlDeviceGetGpuInstancePossiblePlacements(  # noqa: N802
        self, gpu: FakeGpu, profile_id: int, places: Any, count: Any
    ) -> None:
        profile = self._profile(gpu, profile_id)
        assert count._obj.value >= len(profile.placements)
        for index, start in enumerate(profile.placements):
            places[index].start, places[index].size = start, profile.memory_slices
        count._obj.value = len(profile.placements)

    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: FakeGpu) -> int:  # noqa: N802
        return 7 if gpu.profiles else 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: FakeGpu, index: int) -> FakeInstance:  # noqa: N802
        made = [each for each in gpu.instances if each.compute]
        if index >= len(made):
            raise pynvml.NVMLError(NOT_FOUND)
        return made[index]

    def nvmlDeviceGetGpuInstanceId(self, device: FakeInstance) -> int:  # noqa: N802
        return device.id

    def nvmlDeviceGetComputeInstanceId(self, device: FakeInstance) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetGpuInstanceById(self, gpu: FakeGpu, id_: int) -> FakeInstance:  # noqa: N802
        return next(each for each in gpu.instances if each.id == id_)

    def nvmlGpuInstanceGetInfo(self, instance: FakeInstance) -> Any:  # noqa: N802
        place = SimpleNamespace(start=instance.start, size=len(instance.slices))
        return SimpleNamespace(profileId=instance.profile.id, placement=place)

    def nvmlDeviceCreateGpuInstanceWithPlacement(  # noqa: N802
        self, gpu: FakeGpu, profile_id: int, place: Any
    ) -> FakeInstance:
        start = place._obj.start
        made = FakeInstance(gpu, 0, self._profile(gpu, profile_id), start)
        taken = {each for other in gpu.instances for each in other.slices}
        if not gpu.mig or taken & set(made.slices):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES)
        numbers = {each.id for each in gpu.instances}
        made.id = min(set(range(1, 16)) - numbers)
        gpu.instances.append(made)
        return made

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(  # noqa: N802
        self, instance: FakeInstance, number: int, engine: int
    ) -> Any:
        slices = (1, 2, 3, 4, 7)
        assert engine == 0
        if number >= len(slices) or slices[number] > int(instance.profile.name[0]):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(id=number, sliceCount=slices[number])

    def nvmlGpuInstanceCreateComputeInstance(self, instance: FakeInstance, id_: int) -> None:  # noqa: N802
        if instance.gpu.refuses_compute:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
        assert id_ == (1, 2, 3, 4, 7).index(int(instance.profile.name[0]))
        instance.compute = True

    def nvmlGpuInstanceGetComputeInstanceById(  # noqa: N802
        self, instance: FakeInstance, id_: int
    ) -> FakeInstance:
        assert id_ == 0
        return instance

    def nvmlComputeInstanceDestroy(self, instance: FakeInstance) -> None:  # noqa: N802
        instance.compute = False

    def nvmlGpuInstanceDestroy(self, instance: FakeInstance) -> None:  # noqa: N802
        assert not instance.compute
        instance.gpu.instances.remove(instance)

    # --- events ---------------------------------------------------------------------------

    def nvmlEventSetCreate(self) -> str:  # noqa: N802
        return "events"

    def nvmlDeviceGetSupportedEventTypes(self, gpu: FakeGpu) -> int:  # noqa: N802
        return int(pynvml.nvmlEventTypeAll) if gpu.is_watchable else 0

    def nvmlDeviceRegisterEvents(self, gpu: FakeGpu, types: int, events: str) -> None:  # noqa: N802
        assert (types, events) == (0xA, "events")

    def nvmlEventSetWait_v2(self, events: str, timeout_ms: int) -> Any:  # noqa: N802
        if not self.events:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        event = self.events.popleft()
        if isinstance(event, int):
            raise pynvml.NVMLError(event)
        return event

    def nvmlEventSetFree(self, events: str) -> None:  # noqa: N802
        self.freed += 1

    def happens(self, gpu: FakeGpu, type_: int, data: int = 0, instance: int = 0xFFFFFFFF) -> None:
        """Have something happen to a GPU."""
        event = SimpleNamespace(device=gpu, eventType=type_, eventData=data, gpuInstanceId=instance)
        self.events.append(event)

    def _alive(self, gpu: FakeGpu) -> FakeGpu:
        if gpu.is_lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return gpu

    def _profile(self, gpu: FakeGpu, id_: int) -> MigProfile:
        return next(each for each in gpu.profiles if each.id == id_)
