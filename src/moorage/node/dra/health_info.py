"""What drivers reported of the health of their devices, and how long that holds (pure).

A device is Unknown without a report, or if the last one is too old. The amount of data that a
driver can make the node store is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from moorage.api.core import Pod
from moorage.api.core.pod import (
    HEALTHY,
    UNHEALTHY,
    UNKNOWN,
    ResourceHealth,
    ResourceStatus,
    health_name,
)
from moorage.claims.pod_claims import Named, reference_of
from moorage.node.dra.claim_info import ClaimInfo, ClaimInfoCache, ClaimKey, PreparedDevice
from moorage.node.dra.claim_requests import NodeFeatures, extended_requests_of
from moorage.wire import health_v1_pb2 as wire

TIMEOUT_S = 30.0  # if the driver does not say
TIMEOUT_MAX_S = 10.0 * 365 * 24 * 3600
DEVICES_MAX = 16384  # of one driver
NAME_MAX = 256  # of a pool or device, as the API allows
MESSAGE_BYTES_MAX = 1024
_CUT = "..."

_HEALTH = {1: HEALTHY, 2: UNHEALTHY}


class DeviceKey(NamedTuple):
    """A device of a driver."""

    pool: str
    name: str


class ReportedHealth(Struct, frozen=True):
    """The last report about a device, and its time."""

    health: str = UNKNOWN
    message: str = ""
    timeout_s: float = TIMEOUT_S
    seen_s: float = 0.0  # monotonic

    def is_stale(self, now_s: float) -> bool:
        """Return whether the report no longer holds."""
        return now_s - self.seen_s > self.timeout_s

    def differs(self, other: ReportedHealth) -> bool:
        """Return whether another report says something else."""
        return (self.health, self.message, self.timeout_s) != (
            other.health,
            other.message,
            other.timeout_s,
        )


UNKNOWN_HEALTH = ReportedHealth()
DriverHealth = dict[str, dict[DeviceKey, ReportedHealth]]


class HealthChange(NamedTuple):
    """Devices whose health changed, and how many were ignored."""

    devices: tuple[DeviceKey, ...] = ()
    ignored: int = 0
    is_changed: bool = False  # the checkpoint is outdated


class HealthInfo:
    """The health of all devices of all drivers."""

    def __init__(
        self, drivers: Mapping[str, Mapping[DeviceKey, ReportedHealth]] | None = None
    ) -> None:
        self._drivers: DriverHealth = {name: dict(each) for name, each in (drivers or {}).items()}

    def get(self, driver: str, device: DeviceKey, now_s: float) -> ReportedHealth:
        """Return the health of a device, Unknown without a report that holds."""
        found = self._drivers.get(driver, {}).get(device)
        return UNKNOWN_HEALTH if found is None or found.is_stale(now_s) else found

    def items(self) -> Iterator[tuple[str, Mapping[DeviceKey, ReportedHealth]]]:
        """Yield all drivers with their devices."""
        yield from self._drivers.items()

    def report(
        self, driver: str, devices: Iterable[tuple[DeviceKey, ReportedHealth]], now_s: float
    ) -> HealthChange:
        """Take in a report; devices that it does not mention keep their health for its time."""
        known = self._drivers.setdefault(driver, {})
        changed, ignored, reported = [], 0, set()
        for key, health in devices:
            reported.add(key)
            before = known.get(key)
            if before is None and len(known) >= DEVICES_MAX:
                ignored += 1
                continue
            if before is None or before.differs(health):
                changed.append(key)
            known[key] = health
        gone = self._drop_stale(driver, now_s, spared=reported)
        is_changed = bool(changed) or gone.is_changed
        return HealthChange((*changed, *gone.devices), ignored, is_changed)

    def expire(self, now_s: float) -> dict[str, HealthChange]:
        """Drop reports that no longer hold, and return the changes by driver."""
        found = {driver: self._drop_stale(driver, now_s) for driver in self._drivers}
        return {driver: change for driver, change in found.items() if change.is_changed}

    def next_expiry_s(self) -> float | None:
        """Return when the next report expires."""
        ends = (
            each.seen_s + each.timeout_s
            for some in self._drivers.values()
            for each in some.values()
        )
        return min(ends, default=None)

    def clear(self, driver: str) -> HealthChange:
        """Drop all reports of a driver."""
        gone = self._drivers.pop(driver, None)
        if not gone:
            return HealthChange()
        devices = (key for key, health in gone.items() if health.health != UNKNOWN)
        return HealthChange(tuple(devices), is_changed=True)

    def _drop_stale(
        self, driver: str, now_s: float, spared: Iterable[DeviceKey] = frozenset()
    ) -> HealthChange:
        known, kept = self._drivers[driver], set(spared)
        stale = {
            key: each for key, each in known.items() if each.is_stale(now_s) and key not in kept
        }
        for key in stale:
            del known[key]
        # An Unknown device stays Unknown: no change.
        news = tuple(key for key, health in stale.items() if health.health != UNKNOWN)
        return HealthChange(news, is_changed=bool(stale))


def read_report(
    report: wire.NodeWatchResourcesResponse, now_s: float
) -> Iterator[tuple[DeviceKey, ReportedHealth]]:
    """Yield the devices of a report, up to the bound."""
    for device in report.devices[:DEVICES_MAX]:
        key = DeviceKey(device.device.pool_name, device.device.device_name)
        if max(map(len, key)) > NAME_MAX:
            continue  # no ResourceSlice can have such a device
        wanted_s = float(device.health_check_timeout_seconds)
        yield (
            key,
            ReportedHealth(
                health=_HEALTH.get(device.health, UNKNOWN),
                message=cut(device.message),
                timeout_s=min(wanted_s, TIMEOUT_MAX_S) if wanted_s > 0 else TIMEOUT_S,
                seen_s=now_s,
            ),
        )


def cut(message: str) -> str:
    """Return a message that fits a pod's status."""
    encoded = message.encode()
    if len(encoded) <= MESSAGE_BYTES_MAX:
        return message
    return encoded[: MESSAGE_BYTES_MAX - len(_CUT)].decode(errors="ignore") + _CUT


# --- in a pod's status ----------------------------------------------------------------------------

# The health of a device, by driver, pool and name.
FindHealth = Callable[[str, str, str], ReportedHealth]


def allocated_resources_status(
    pod: Pod,
    container: str,
    cache: ClaimInfoCache,
    find_health: FindHealth,
    *,
    features: NodeFeatures,
) -> tuple[ResourceStatus, ...]:
    """Return the health of a container's devices; only regular containers have it.

    Devices of extended resources come under the special claim, as the API allows for them.
    """
    found = next((each for each in pod.spec.containers if each.name == container), None)
    if found is None:
        return ()
    extended = extended_requests_of(pod, found, features)
    uses = (
        *(
            (each.name, _state(pod, each.name, cache), each.request)
            for each in found.resources.claims
        ),
        *((key.name, cache.get(key), request) for key, request in extended),
    )
    statuses: dict[str, ResourceStatus] = {}
    for claim, state, request in uses:
        name = health_name(claim, request)
        resources: dict[str, ResourceHealth] = {}
        for driver, device in () if state is None else state.devices:
            if device.serves(request):
                health = find_health(driver, device.pool, device.name)
                entry = _entry(driver, device, health, has_messages=features.health_messages)
                resources.setdefault(entry.resource_id, entry)
        if resources:
            statuses[name] = ResourceStatus(name=name, resources=tuple(resources.values()))
    return tuple(statuses.values())


def _state(pod: Pod, entry_name: str, cache: ClaimInfoCache) -> ClaimInfo | None:
    for entry in pod.spec.resource_claims:
        if entry.name == entry_name:
            reference = reference_of(pod, entry)
            if isinstance(reference, Named):
                return cache.get(ClaimKey(pod.metadata.namespace, reference.name))
    return None


def _entry(
    driver: str, device: PreparedDevice, health: ReportedHealth, *, has_messages: bool
) -> ResourceHealth:
    return ResourceHealth(
        resource_id=device.cdi_ids[0]
        if device.cdi_ids
        else f"{driver}/{device.pool}/{device.name}",
        health=health.health,
        message=health.message if has_messages and health.message else None,
    )
