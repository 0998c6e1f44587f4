"""The health of devices in a file, in the kubelet's form; nothing depends on it being there."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from mooring.kit.clock import Clock
from mooring.node.dra.files import read_bounded
from mooring.node.dra.healthbook import TIMEOUT_S, DeviceKey, Health, HealthBook

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


def encode(book: HealthBook, clock: Clock) -> bytes:
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


def read(path: Path, clock: Clock) -> HealthBook:
    """Return what a file says; a file that is missing or broken says nothing."""
    try:
        drivers = _DECODER.decode(read_bounded(path, BYTES_MAX))
    except FileNotFoundError:
        return HealthBook()
    except (OSError, ValueError, RecursionError) as error:
        LOG.warning("%s: %s; health is learnt anew", path, error)
        return HealthBook()
    now, now_s = clock.now(), clock.monotonic()
    return HealthBook(
        {
            driver: dict(_device(device, now, now_s) for device in (found.devices or {}).values())
            for driver, found in drivers.items()
        }
    )


def _device(device: _Device, now: datetime, now_s: float) -> tuple[DeviceKey, Health]:
    seen = device.last_updated if device.last_updated.tzinfo else now
    age_s = max((now - seen).total_seconds(), 0.0)  # a clock may have been set back
    timeout_s = device.health_check_timeout / _NS or TIMEOUT_S
    health = Health(device.health, device.message, timeout_s, now_s - age_s)
    return DeviceKey(device.pool_name, device.device_name), health
