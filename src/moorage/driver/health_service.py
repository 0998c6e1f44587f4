"""The health of devices for the kubelet: one driver reports, any number of streams listen.

A new stream gets everything known so far. A report without a timeout holds until the next one, so
it is repeated before the kubelet drops it. When the driver's stream ends or fails, nothing holds:
the health of its devices is unknown.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from typing import Any

from msgspec import Struct

from moorage.api.structs import shown
from moorage.driver.driver import DeviceHealth, Driver, Health
from moorage.driver.driver_calls import driver_error, raised_text
from moorage.driver.errors import HealthError
from moorage.kit.backoff import Backoff
from moorage.kit.clock import REAL, Clock
from moorage.wire import grpc
from moorage.wire import health_v1_pb2 as wire
from moorage.wire.services import HEALTH_V1, HEALTH_V1ALPHA1, WATCH_HEALTH, Method

LOG = logging.getLogger(__name__)

REPEAT_S = 10.0  # the kubelet drops a report after 30 s
DEVICES_MAX = 16_384
BACKOFF = Backoff(first_s=1.0, longest_s=60.0)


class _Report(Struct, frozen=True):
    health: DeviceHealth
    at_s: int


class HealthService:
    """Takes in a driver's reports, and sends them to all streams."""

    def __init__(
        self,
        driver: Driver,
        node_name: str,
        *,
        report: Callable[[Exception], None] | None = None,
        clock: Clock = REAL,
    ) -> None:
        self._driver = driver
        self._report = report or driver.report
        self._node_name = node_name
        self._clock = clock
        self._source = self._driver_stream()
        self._reports: dict[tuple[str, str], _Report] = {}
        self._listeners: set[_Listener] = set()

    @property
    def is_known(self) -> bool:
        """Whether the driver reports the health of its devices."""
        return self._source is not None

    @property
    def versions(self) -> tuple[str, ...]:
        """The service names to register."""
        return (HEALTH_V1, HEALTH_V1ALPHA1) if self.is_known else ()

    def methods(self) -> dict[Method, Callable[..., Any]]:
        """Return the methods to serve: both versions have the same messages."""
        return {WATCH_HEALTH.of(version): self._watch for version in (HEALTH_V1, HEALTH_V1ALPHA1)}

    async def run(self) -> None:
        """Follow the driver until cancelled."""
        if not self.is_known:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_driver())
            tasks.create_task(self._repeat())

    def close(self) -> None:
        """End all streams."""
        for listener in self._listeners:
            listener.close()

    # --- the driver -------------------------------------------------------------------------------

    async def _follow_driver(self) -> None:
        failures = 0
        source = self._source
        while True:
            try:
                source = source or self._driver_stream()
                if source is not None:
                    async for changes in source:
                        self._take(_checked(changes))
                        failures = 0
            except (Exception, SystemExit) as error:  # which would end the event loop
                failures += 1
                source = None
                self._lose(str(error.__cause__ or error))
                self._report(error if isinstance(error, HealthError) else _raised(error))
            else:
                return self._end()
            await self._clock.sleep(BACKOFF.delay_s(failures))

    def _driver_stream(self) -> AsyncIterator[Iterable[DeviceHealth]] | None:
        """Return the driver's stream of reports, if any; raises HealthError for anything else."""
        try:
            found: Any = self._driver.health()
        except (Exception, SystemExit) as error:
            raise _raised(error) from driver_error(error)
        if found is None or isinstance(found, AsyncIterator):
            return found
        if inspect.iscoroutine(found):
            found.close()
        raise HealthError(
            f"health() returned {shown(found)}; write an async generator "
            "(async def with yield), or return None"
        )

    def _end(self) -> None:
        LOG.info("the driver's health stream has ended")
        if self._reports:
            fact = f"the health of {len(self._reports)} devices is not known any more"
            self._lose("the driver says no more of it")
            self._report(HealthError(f"health() has ended: {fact}"))

    def _take(self, changes: Iterable[DeviceHealth]) -> None:
        at_s = int(self._clock.now().timestamp())
        keys = []
        for each in changes:
            key = (each.pool or self._node_name, each.device)
            if key not in self._reports and len(self._reports) >= DEVICES_MAX:
                LOG.warning("the health of more than %d devices is not reported", DEVICES_MAX)
                break
            self._reports[key] = _Report(each, at_s)
            keys.append(key)
        self._notify(keys)

    def _lose(self, why: str) -> None:
        """Report all devices as unknown."""
        message = f"health is not known: {why}"
        self._take(
            [
                DeviceHealth(device, Health.UNKNOWN, message, pool)
                for pool, device in tuple(self._reports)
            ]
        )

    async def _repeat(self) -> None:
        while True:
            await self._clock.sleep(REPEAT_S)
            self._notify([key for key, each in self._reports.items() if not each.health.timeout_s])

    def _notify(self, keys: Iterable[tuple[str, str]]) -> None:
        for listener in self._listeners:
            listener.add(keys)

    # --- the kubelet ------------------------------------------------------------------------------

    async def _watch(
        self, _: wire.NodeWatchResourcesRequest, context: Any
    ) -> AsyncIterator[wire.NodeWatchResourcesResponse]:
        if not self.is_known:
            await context.abort(
                grpc.StatusCode.UNIMPLEMENTED, "the driver does not know its devices' health"
            )
        listener = _Listener(self._reports)
        self._listeners.add(listener)
        try:
            while keys := await listener.take():
                devices = [self._device(key, self._reports[key]) for key in keys]
                yield wire.NodeWatchResourcesResponse(devices=devices)
        finally:
            self._listeners.discard(listener)

    def _device(self, key: tuple[str, str], report: _Report) -> wire.DeviceHealth:
        pool, device = key
        return wire.DeviceHealth(
            device=wire.DeviceIdentifier(pool_name=pool, device_name=device),
            health=report.health.health.value,  # type: ignore[arg-type]
            last_updated_time=report.at_s,
            health_check_timeout_seconds=report.health.timeout_s,
            message=report.health.message,
        )


def _checked(changes: Any) -> list[DeviceHealth]:
    if not isinstance(changes, Iterable) or isinstance(changes, str | bytes | dict):
        instead = "yield [DeviceHealth(…)]"
        raise HealthError(f"health() yielded {shown(changes)}, not a list; write {instead}")
    found = list(islice(changes, DEVICES_MAX + 1))
    for each in found:
        if not isinstance(each, DeviceHealth):
            raise HealthError(f"health() yielded a list with {shown(each)}, not with DeviceHealth")
    return found


def _raised(error: BaseException) -> HealthError:
    failed = HealthError(raised_text("health", error))
    failed.__cause__ = driver_error(error)
    return failed


class _Listener:
    """The devices that one stream has yet to send, each once, so that a slow one costs nothing."""

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        self._keys = dict.fromkeys(keys)
        self._has_some = asyncio.Event()
        self._is_closed = False
        if self._keys:
            self._has_some.set()

    def add(self, keys: Iterable[tuple[str, str]]) -> None:
        self._keys.update(dict.fromkeys(keys))
        if self._keys:
            self._has_some.set()

    def close(self) -> None:
        self._is_closed = True
        self._has_some.set()

    async def take(self) -> list[tuple[str, str]]:
        """Wait for devices to send; none at the end."""
        await self._has_some.wait()
        keys = [] if self._is_closed else list(self._keys)
        self._keys.clear()
        if not self._is_closed:
            self._has_some.clear()
        return keys
