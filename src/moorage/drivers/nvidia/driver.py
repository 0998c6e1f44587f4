"""gpu.nvidia.com: the GPUs of this machine, whole, or in partitions (MIG).

    static     a GPU is published whole, or, if MIG is on, by the partitions that it has
    dynamic    a GPU is published whole and with every possible partition; an allocated partition
               is created when it is prepared, and destroyed when it is unprepared

A container gets device files (see `cdi`), and the GPUs for a program to use:

    CUDA_VISIBLE_DEVICES=GPU-…    NVIDIA_VISIBLE_DEVICES=GPU-…
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.cdi import ContainerEdits
from moorage.api.process_binding import item_variable
from moorage.api.resource.v1 import CounterSet, Device, DeviceTaint
from moorage.driver.driver import (
    AllocatedDevice,
    Claim,
    ClaimName,
    DeviceHealth,
    Health,
    Pool,
    Prepared,
    PrepareError,
)
from moorage.drivers.host import (
    Host,
    WatchingDriver,
    check_present,
    device_gone,
    devices_of_request,
    join_unique,
)
from moorage.drivers.nvidia.cdi import Edits, Exists, OwnEdits, tool_edits
from moorage.drivers.nvidia.gpus import (
    FoundGpu,
    Library,
    NoLibraryError,
    Partition,
    created,
    destroyed,
    error_text,
    load_nvml,
    read_gpus,
    start_nvml,
    whole,
)
from moorage.drivers.nvidia.health import WHOLE, GpuFault, Watch
from moorage.hardware.attributes import text
from moorage.hardware.board import MigProfile
from moorage.hardware.drivers.nvidia_gpu import DRIVER, Gpu, partition_name

LOG = logging.getLogger(__name__)

WAIT_MS = 2_000
VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


class GpuPartition(NamedTuple):
    """The meaning of a published name: a GPU, or a place for a partition of it."""

    gpu: FoundGpu
    profile: MigProfile | None = None
    start: int = 0
    partition: Partition | None = None  # if it exists


class NvidiaDriver(WatchingDriver):
    """Allocates GPUs. Without NVML there are none, and `absence` says why."""

    name = DRIVER
    subsystems = frozenset({"pci"})

    def __init__(
        self,
        host: Host,
        *,
        is_dynamic: bool = False,
        ignored_xids: frozenset[int] = frozenset(),
        library: Library | None = None,
        edits: Edits | None = None,
        exists: Exists = os.path.exists,
    ) -> None:
        super().__init__(host)
        self._is_dynamic = is_dynamic
        self._ignored = ignored_xids
        self._injected_library = library
        self._library: Library | None = None
        self._edits = edits
        self._own_edits = OwnEdits(host, exists)
        self._taints: dict[str, DeviceTaint] = {}  # by device
        self._prepared: dict[str, tuple[str, ...]] = {}  # partitions that we created, by claim
        self.absence = ""

    # --- publishing -----------------------------------------------------------------------

    def devices(self) -> list[Pool]:
        """Return the existing and possible GPUs and partitions."""
        devices: list[Device] = []
        counters: list[CounterSet] = []
        for found in self._gpus():
            gpu = self._gpu(found)
            if self._is_dynamic and gpu.has_partitions:
                counters.append(gpu.counter_set())
                devices += (gpu.whole_device(), *gpu.partitions())
            elif found.is_mig_enabled:
                devices += (
                    gpu.existing_partition(each.profile, each.start, each.uuid)
                    for each in found.partitions
                )
            else:
                devices.append(gpu.device())
        tainted = tuple(map(self._tainted, devices))
        return [Pool(devices=tainted, counters=tuple(counters))] if devices else []

    def _gpus(self) -> list[FoundGpu]:
        """Return the GPUs that NVML reports; none without NVML."""
        if self._library is None:
            try:
                injected = self._injected_library
                self._library = load_nvml() if injected is None else start_nvml(injected)
            except NoLibraryError as error:
                self.absence = str(error)
                return []
            self.absence = ""
        return read_gpus(self._library)

    def _gpu(self, found: FoundGpu) -> Gpu:
        place = self._host.place
        return Gpu(found.minor, found.uuid, found.model, place=place, address=found.address)

    def _tainted(self, device: Device) -> Device:
        taint = self._taints.get(device.name)
        return device if taint is None else replace(device, taints=(taint,))

    def _parts(self) -> dict[str, GpuPartition]:
        """Return the GPU or partition of each published name."""
        parts: dict[str, GpuPartition] = {}
        for gpu in self._gpus():
            parts[f"gpu-{gpu.minor}"] = GpuPartition(gpu)
            made = {(each.profile.id, each.start): each for each in gpu.partitions}
            for profile in gpu.model.mig:
                for start in profile.placements:
                    name = partition_name(gpu.minor, profile.name, profile.id, start)
                    parts[name] = GpuPartition(gpu, profile, start, made.get((profile.id, start)))
        return parts

    # --- preparing ------------------------------------------------------------------------

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Prepare the GPUs of a claim; create partitions if necessary."""
        parts = self._parts()
        check_present(claim, parts)
        before = self._prepared.get(claim.uid, ())
        ready: dict[str, GpuPartition] = {}
        try:
            for device in claim.devices:
                ready[device.name] = self._ready(claim, device, parts[device.name])
        except PrepareError:
            # Earlier partitions may be in use; those that cannot be destroyed now are remembered.
            with suppress(PrepareError):
                self._undo(claim.uid, before)
            raise
        for device in claim.devices:
            fellows = [ready[each.name] for each in devices_of_request(claim, device.request)]
            yield self._with_edits(claim, device, ready[device.name], fellows)

    def unprepare(self, claim: ClaimName) -> None:
        """Destroy the partitions that were created for a claim."""
        self._undo(claim.uid)

    def restored(self, claim: ClaimName, prepared: Iterable[Prepared]) -> None:
        """Restore which partitions were created for a claim before this driver started."""
        if self._is_dynamic:
            names = (each.device for each in prepared if not each.device.has_admin_access)
            self._prepared[claim.uid] = tuple(each.name for each in names if "-mig-" in each.name)

    def _undo(self, uid: str, kept: tuple[str, ...] = ()) -> None:
        """Destroy the partitions of a claim, except some, or raise PrepareError."""
        names = [name for name in self._prepared.get(uid, ()) if name not in kept]
        parts = self._parts() if names else {}
        for name in names:
            part = parts.get(name)
            if part is not None and part.profile is not None:
                destroyed(self._library, part.gpu, part.profile, part.start)
        self._prepared.pop(uid, None)
        if kept:
            self._prepared[uid] = kept

    def _ready(self, claim: Claim, device: AllocatedDevice, part: GpuPartition) -> GpuPartition:
        """Return a device after creating it if necessary, or raise PrepareError."""
        if part.profile is None:
            if self._is_dynamic and not device.has_admin_access:
                whole(self._library, part.gpu)
            return part
        if part.partition is None and (not self._is_dynamic or device.has_admin_access):
            raise device_gone(device)
        if self._is_dynamic and not device.has_admin_access:
            # Recorded before it is created: whatever happens, it is destroyed with the claim.
            names = (*self._prepared.get(claim.uid, ()), device.name)
            self._prepared[claim.uid] = tuple(dict.fromkeys(names))
            partition = created(self._library, part.gpu, part.profile, part.start)
            return part._replace(partition=partition)
        return part

    def _with_edits(
        self, claim: Claim, device: AllocatedDevice, part: GpuPartition, fellows: list[GpuPartition]
    ) -> Prepared:
        """Return a device with the edits of its containers."""
        edits = self._tool().of(part.gpu, part.partition)
        uuids = join_unique(map(_uuid, fellows))
        names = (item_variable(each, claim.uid, device.request) for each in VARIABLES)
        env = [f"{name}={uuids}" for name in names]
        if edits is None:
            edits = self._own_edits.of(part.gpu, part.partition)
            env += (f"{name}={uuids}" for name in VARIABLES)
        return Prepared(
            device,
            edits + ContainerEdits(env=tuple(env)),
            attributes={"uuid": text(_uuid(part))},
        )

    def _tool(self) -> Edits:
        if self._edits is None:
            self._edits = tool_edits() or _NoEdits()
        return self._edits

    # --- health ---------------------------------------------------------------------------

    async def health(self) -> AsyncIterator[list[DeviceHealth]]:
        """Yield the health of all devices, and then each that fails."""
        gpus = await asyncio.to_thread(self._gpus)
        if not gpus:
            return
        names = self._names_by_instance(gpus)
        try:
            watch = Watch(self._library, gpus, names, self._ignored)
        except self._library.NVMLError as error:  # type: ignore[union-attr]
            LOG.warning("cannot watch GPUs: %s", error_text(error))
            return
        try:
            yield self._first(names, watch)
            while True:
                faults = await asyncio.to_thread(watch.wait, WAIT_MS)
                if faults:
                    self._taint(faults)
                    yield [fault.health for fault in faults]
        finally:
            watch.close()

    def _names_by_instance(self, gpus: list[FoundGpu]) -> dict[tuple[str, int], tuple[str, ...]]:
        """Return the devices of each GPU, and of each of its instances."""
        published = {device.name for pool in self.devices() for device in pool.devices}
        found: dict[tuple[str, int], tuple[str, ...]] = {}
        for gpu in gpus:
            own = f"gpu-{gpu.minor}"
            mine = (name for name in published if name == own or name.startswith(f"{own}-"))
            found[gpu.uuid, WHOLE] = tuple(sorted(mine))
            for each in gpu.partitions:
                name = partition_name(gpu.minor, each.profile.name, each.profile.id, each.start)
                found[gpu.uuid, each.gpu_instance] = (name,)
        return found

    def _first(
        self, names: dict[tuple[str, int], tuple[str, ...]], watch: Watch
    ) -> list[DeviceHealth]:
        unwatched = {gpu.uuid for gpu in watch.unwatched}
        found: list[DeviceHealth] = []
        for (uuid, instance), devices in names.items():
            if instance == WHOLE:
                known = Health.UNKNOWN if uuid in unwatched else Health.HEALTHY
                found += (DeviceHealth(name, known) for name in devices)
        return found

    def _taint(self, faults: list[GpuFault]) -> None:
        """Taint failed devices, so that no new claim gets them."""
        for fault in faults:
            self._taints[fault.device] = fault.taint
        self.republish()


class _NoEdits:
    def of(self, gpu: FoundGpu, partition: Partition | None) -> None:  # noqa: ARG002
        return None


def _uuid(part: GpuPartition) -> str:
    return part.gpu.uuid if part.partition is None else part.partition.uuid
