"""Drivers' health streams, and a checkpoint of their reports, in the kubelet's format.

A changed health goes to the status of the pods that have the device. Nothing depends on the
checkpoint.
"""

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

from moorage.kit.atomic_file import read_bounded
from moorage.kit.bulkhead import keep_running
from moorage.kit.clock import REAL, Clock
from moorage.node.dra.checkpoint import SavedFile
from moorage.node.dra.health_info import (
    DEVICES_MAX,
    TIMEOUT_S,
    DeviceKey,
    HealthChange,
    HealthInfo,
    ReportedHealth,
    read_report,
)
from moorage.node.dra.plugin_manager import DraPlugin
from moorage.node.errors import CallError, SaveError
from moorage.wire import grpc

LOG = logging.getLogger(__name__)

FILE_NAME = "dra_health_state"
BYTES_MAX = 256 * 1024 * 1024
_NS = 1_000_000_000
RETRY_S = 5.0
REPORT_PAUSE_S = 0.05  # between two reports of a driver, however fast it sends
SAVE_PAUSE_S = 1.0  # between two writes; drivers repeat what a crash loses


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


def encode(cache: HealthInfo, clock: Clock) -> bytes:
    """Return the content of the checkpoint."""
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
        for driver, devices in cache.items()
    }
    return msgspec.json.encode(drivers)


def read(path: Path, clock: Clock) -> HealthInfo:
    """Return the checkpoint; a missing or broken file is empty."""
    try:
        drivers = _DECODER.decode(read_bounded(path, BYTES_MAX))
    except FileNotFoundError:
        return HealthInfo()
    except (OSError, ValueError, RecursionError) as error:
        LOG.warning("%s: %s; the health of devices is unknown until drivers report it", path, error)
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
    age_s = max((now - seen).total_seconds(), 0.0)  # the clock may have been set back
    timeout_s = device.health_check_timeout / _NS or TIMEOUT_S
    health = ReportedHealth(device.health, device.message, timeout_s, now_s - age_s)
    return DeviceKey(device.pool_name, device.device_name), health


# --- streams --------------------------------------------------------------------------------------


# Called with devices of a driver whose health changed.
Affected = Callable[[str, Iterable[DeviceKey]], None]


class HealthStreams:
    """Follows the health streams of drivers."""

    def __init__(
        self, folder: Path, affected: Affected, *, clock: Clock = REAL, retry_s: float = RETRY_S
    ) -> None:
        path = folder / FILE_NAME
        self._clock, self._retry_s, self._affected = clock, retry_s, affected
        self._cache = read(path, clock)
        self._file = SavedFile(path, lambda: encode(self._cache, clock))
        self._streams: Counter[str] = Counter()  # of plugins, by driver
        self._unsaved = asyncio.Event()
        self._expiry_changed = asyncio.Event()
        self._warnings: set[str] = set()

    def get(self, driver: str, pool: str, device: str) -> ReportedHealth:
        """Return the health of a device."""
        return self._cache.get(driver, DeviceKey(pool, device), self._clock.monotonic())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HealthStreams]:
        """Write the checkpoint, and expire old reports."""
        tasks = [
            asyncio.create_task(keep_running("health of devices", each, clock=self._clock))
            for each in (self._save, self._expire)
        ]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._file.settled()

    async def follow(self, instance: DraPlugin) -> None:
        """Follow one plugin until it reports that health is not implemented."""
        while True:
            try:
                await self._stream(instance)
            except CallError as error:
                if error.code is grpc.StatusCode.UNIMPLEMENTED:
                    return
                self._warn_once(f"health of {instance.driver}: {error}")
            await self._clock.sleep(self._retry_s)

    async def _stream(self, instance: DraPlugin) -> None:
        driver = instance.driver
        self._streams[driver] += 1
        try:
            async for report in instance.health_reports():
                now_s = self._clock.monotonic()
                change = self._cache.report(driver, read_report(report, now_s), now_s)
                if change.ignored or len(report.devices) > DEVICES_MAX:
                    self._warn_once(
                        f"{driver} reports more than {DEVICES_MAX} devices; some are ignored"
                    )
                self._note(driver, change)
                self._expiry_changed.set()
                await self._clock.sleep(REPORT_PAUSE_S)
        finally:
            self._streams[driver] -= 1
            if not self._streams[driver]:  # otherwise another plugin reports for the driver
                self._note(driver, self._cache.clear(driver))

    def _note(self, driver: str, change: HealthChange) -> None:
        if change.is_changed:
            self._unsaved.set()
        if change.devices:
            self._affected(driver, change.devices)

    def _warn_once(self, text: str) -> None:
        if text not in self._warnings and len(self._warnings) < 1000:
            self._warnings.add(text)
            LOG.warning("%s", text)

    async def _save(self) -> None:
        while True:
            await self._unsaved.wait()
            self._unsaved.clear()
            try:
                await self._file.save()
            except SaveError as error:
                self._warn_once(str(error))
            await self._clock.sleep(SAVE_PAUSE_S)

    async def _expire(self) -> None:
        while True:
            self._expiry_changed.clear()
            next_s = self._cache.next_expiry_s()
            now_s = self._clock.monotonic()
            timer = None
            if next_s is not None:
                wait_s = max(next_s - now_s, 0.0) + 0.001
                timer = self._clock.call_later(wait_s, self._expiry_changed.set)
            try:
                await self._expiry_changed.wait()
            finally:
                if timer is not None:
                    timer.cancel()
            for driver, change in self._cache.expire(self._clock.monotonic()).items():
                self._note(driver, change)
