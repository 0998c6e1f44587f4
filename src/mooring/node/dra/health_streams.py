"""The health of devices in a file, in the kubelet's form; nothing depends on it being there."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from mooring.kit.clock import REAL, Clock
from mooring.node.dra import health_streams
from mooring.node.dra.checkpoint import SavedFile, read_bounded
from mooring.node.dra.health_info import (
    DEVICES_MAX,
    TIMEOUT_S,
    DeviceKey,
    HealthChange,
    HealthInfo,
    ReportedHealth,
    read_report,
)
from mooring.node.dra.plugin_manager import DraPlugin
from mooring.node.errors import CallError, SaveError
from mooring.wire import grpc

LOG = logging.getLogger(__name__)

FILE_NAME = "dra_health_state"
BYTES_MAX = 256 * 1024 * 1024
_NS = 1_000_000_000


class _Device(Struct, rename="pascal"):
    pool_name: str
    device_name: str
    health: str
    last_updated: datetime
    health_check_timeout: int = 0  # nanoseconds
    message: str = ""


class _Driver(Struct, rename="pascal"):
    devices: dict[str, _Device] | None = None


_DECODER = msgspec.json.Decoder(dict[str, _Driver])


def encode(book: HealthInfo, clock: Clock) -> bytes:
    """Return the content of the file."""
    now, now_s = clock.now(), clock.monotonic()
    drivers = {
        driver: _Driver(
            {
                f"{key.pool}/{key.name}": _Device(
                    pool_name=key.pool,
                    device_name=key.name,
                    health=health.health,
                    last_updated=now - timedelta(seconds=now_s - health.seen_s),
                    health_check_timeout=int(health.timeout_s * _NS),
                    message=health.message,
                )
                for key, health in devices.items()
            }
        )
        for driver, devices in book.items()
    }
    return msgspec.json.encode(drivers)


def read(path: Path, clock: Clock) -> HealthInfo:
    """Return what a file says; a file that is missing or broken says nothing."""
    try:
        drivers = _DECODER.decode(read_bounded(path, BYTES_MAX))
    except FileNotFoundError:
        return HealthInfo()
    except (OSError, ValueError, RecursionError) as error:
        LOG.warning("%s: %s; health is learnt anew", path, error)
        return HealthInfo()
    now, now_s = clock.now(), clock.monotonic()
    return HealthInfo(
        {
            driver: dict(_device(device, now, now_s) for device in (found.devices or {}).values())
            for driver, found in drivers.items()
        }
    )


def _device(device: _Device, now: datetime, now_s: float) -> tuple[DeviceKey, ReportedHealth]:
    seen = device.last_updated if device.last_updated.tzinfo else now
    age_s = max((now - seen).total_seconds(), 0.0)  # a clock may have been set back
    timeout_s = device.health_check_timeout / _NS or TIMEOUT_S
    health = ReportedHealth(device.health, device.message, timeout_s, now_s - age_s)
    return DeviceKey(device.pool_name, device.device_name), health


# ---- from mooring.node.dra.healthstreams: Drivers tell the health of their devices; what changes is told on to the pods that have them.

RETRY_S = 5.0
REPORT_PAUSE_S = 0.05  # between two reports of a driver, however fast it talks
SAVE_PAUSE_S = 1.0  # between two writes; what is lost in a crash is told anew

# Told of devices of a driver whose health is another one now.
Affected = Callable[[str, Iterable[DeviceKey]], None]


class HealthStreams:
    """Follows what drivers say of their devices."""

    def __init__(
        self, folder: Path, affected: Affected, *, clock: Clock = REAL, retry_s: float = RETRY_S
    ) -> None:
        path = folder / health_streams.FILE_NAME
        self._clock, self._retry_s, self._affected = clock, retry_s, affected
        self._book = health_streams.read(path, clock)
        self._file = SavedFile(path, lambda: health_streams.encode(self._book, clock))
        self._streams: Counter[str] = Counter()  # of instances, by driver
        self._unsaved = asyncio.Event()
        self._looked_anew = asyncio.Event()
        self._said: set[str] = set()

    def get(self, driver: str, pool: str, device: str) -> ReportedHealth:
        """Return the health of a device."""
        return self._book.get(driver, DeviceKey(pool, device), self._clock.monotonic())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HealthStreams]:
        """Save what is said, and notice what holds no more."""
        tasks = [asyncio.create_task(self._save()), asyncio.create_task(self._expire())]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._file.settled()

    async def follow(self, instance: DraPlugin) -> None:
        """Follow an instance of a driver until it says that it knows nothing of health."""
        while True:
            try:
                await self._stream(instance)
            except CallError as error:
                if error.code is grpc.StatusCode.UNIMPLEMENTED:
                    return
                self._say_once(f"health of {instance.driver}: {error}")
            await self._clock.sleep(self._retry_s)

    async def _stream(self, instance: DraPlugin) -> None:
        driver = instance.driver
        self._streams[driver] += 1
        try:
            async for report in instance.health_reports():
                now_s = self._clock.monotonic()
                change = self._book.report(driver, read_report(report, now_s), now_s)
                if change.ignored or len(report.devices) > DEVICES_MAX:
                    self._say_once(
                        f"{driver} reports more than {DEVICES_MAX} devices; some are ignored"
                    )
                self._tell(driver, change)
                self._looked_anew.set()
                await self._clock.sleep(REPORT_PAUSE_S)
        finally:
            self._streams[driver] -= 1
            if not self._streams[driver]:  # else another instance speaks for the driver
                self._tell(driver, self._book.clear(driver))

    def _tell(self, driver: str, change: HealthChange) -> None:
        if change.is_kept_anew:
            self._unsaved.set()
        if change.devices:
            self._affected(driver, change.devices)

    def _say_once(self, text: str) -> None:
        if text not in self._said and len(self._said) < 1000:
            self._said.add(text)
            LOG.warning("%s", text)

    async def _save(self) -> None:
        while True:
            await self._unsaved.wait()
            self._unsaved.clear()
            try:
                await self._file.save()
            except SaveError as error:
                self._say_once(str(error))
            await self._clock.sleep(SAVE_PAUSE_S)

    async def _expire(self) -> None:
        while True:
            self._looked_anew.clear()
            next_s = self._book.next_expiry_s()
            now_s = self._clock.monotonic()
            timer = None
            if next_s is not None:
                wait_s = max(next_s - now_s, 0.0) + 0.001
                timer = self._clock.call_later(wait_s, self._looked_anew.set)
            try:
                await self._looked_anew.wait()
            finally:
                if timer is not None:
                    timer.cancel()
            for driver, change in self._book.expire(self._clock.monotonic()).items():
                self._tell(driver, change)
