"""The health of GPUs: NVML reports errors as they happen.

XID        a number that says what went wrong; some are the program's fault, not the GPU's
ECC        memory that lost two bits at once
lost       a GPU that does not answer any more
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moorage.api.resource.v1 import DeviceTaint
from moorage.driver.driver import DeviceHealth, Health
from moorage.drivers.nvidia.gpus import FoundGpu, Library, as_text, error_text
from moorage.hardware.drivers.nvidia_gpu import DRIVER

LOG = logging.getLogger(__name__)

# Errors of programs, after which the GPU is healthy.
HARMLESS_XIDS = frozenset({13, 31, 43, 45, 68, 109})
WHOLE = 0xFFFFFFFF  # the instance of events that concern all of a GPU
LOST = "gpu-lost"


class GpuFault(NamedTuple):
    """An error of a device."""

    device: str
    key: str  # xid, ecc, gpu-lost
    value: str = ""

    @property
    def taint(self) -> DeviceTaint:
        """The taint that keeps new claims away."""
        return DeviceTaint(key=f"{DRIVER}/{self.key}", value=self.value, effect="NoSchedule")

    @property
    def health(self) -> DeviceHealth:
        """The health that users of the device see."""
        text = f"{self.key} {self.value}".strip()
        return DeviceHealth(self.device, Health.UNHEALTHY, text)


class Watch:
    """Waits for events of GPUs."""

    def __init__(
        self,
        library: Library,
        gpus: Iterable[FoundGpu],
        devices: Mapping[tuple[str, int], tuple[str, ...]],  # by GPU, and instance or WHOLE
        ignored_xids: frozenset[int] = frozenset(),
    ) -> None:
        self._library = library
        self._devices = devices
        self._ignored = HARMLESS_XIDS | ignored_xids
        self._events = library.nvmlEventSetCreate()
        self.unwatched = [gpu for gpu in gpus if not self._is_watched(gpu)]

    def wait(self, timeout_ms: int) -> list[GpuFault]:
        """Return the next errors; none if there were none within the time."""
        library = self._library
        try:
            event = library.nvmlEventSetWait_v2(self._events, timeout_ms)
        except library.NVMLError_Timeout:
            return []
        except library.NVMLError_GpuIsLost:
            return [GpuFault(name, LOST) for name in self._all()]
        except library.NVMLError as error:
            LOG.warning("waiting for events of GPUs: %s", error_text(error))
            return []
        found = self._fault(int(event.eventType), int(event.eventData))
        if found is None:
            return []
        key, value = found
        return [GpuFault(name, key, value) for name in self._concerned(event)]

    def close(self) -> None:
        """Stop waiting."""
        self._library.nvmlEventSetFree(self._events)

    def _is_watched(self, gpu: FoundGpu) -> bool:
        library = self._library
        wanted = library.nvmlEventTypeXidCriticalError | library.nvmlEventTypeDoubleBitEccError
        try:
            known = library.nvmlDeviceGetSupportedEventTypes(gpu.handle)
            if not wanted & known:
                return False
            library.nvmlDeviceRegisterEvents(gpu.handle, wanted & known, self._events)
        except library.NVMLError as error:
            LOG.warning("GPU %d cannot be watched: %s", gpu.minor, error_text(error))
            return False
        return True

    def _fault(self, type_: int, data: int) -> tuple[str, str] | None:
        if type_ == self._library.nvmlEventTypeDoubleBitEccError:
            return "ecc", "double-bit"
        if type_ == self._library.nvmlEventTypeXidCriticalError and data not in self._ignored:
            return "xid", str(data)
        return None

    def _concerned(self, event: object) -> tuple[str, ...]:
        """Return the devices of an event; a GPU without a uuid is lost."""
        library = self._library
        try:
            uuid = as_text(library.nvmlDeviceGetUUID(event.device))  # type: ignore[attr-defined]
        except library.NVMLError:
            return self._all()
        instance = int(event.gpuInstanceId)  # type: ignore[attr-defined]
        return self._devices.get((uuid, instance)) or self._devices.get((uuid, WHOLE), ())

    def _all(self) -> tuple[str, ...]:
        found = (name for names in self._devices.values() for name in names)
        return tuple(dict.fromkeys(found))
