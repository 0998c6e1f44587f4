"""How a driver becomes known to its node: it says who it is, and hears what the node thinks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mooring.driver.driver import Driver
from mooring.driver.errors import RegistrationError
from mooring.wire import registration_pb2 as wire
from mooring.wire.services import DRA_PLUGIN, GET_INFO, NOTIFY, Method

LOG = logging.getLogger(__name__)


class Registration:
    """Answers the node's plugin watcher."""

    def __init__(
        self,
        driver: Driver,
        socket: Path,
        versions: tuple[str, ...],
        *,
        report: Callable[[Exception], None] | None = None,
    ) -> None:
        self._report = report or driver.report
        self._info = wire.PluginInfo(
            type=DRA_PLUGIN,
            name=driver.name,
            endpoint=str(socket),
            supported_versions=versions,
        )
        self.is_registered = asyncio.Event()

    def methods(self) -> dict[Method, Callable[..., Any]]:
        """Return what to serve."""
        return {GET_INFO: self._get_info, NOTIFY: self._notify}

    async def _get_info(self, _: wire.InfoRequest, __: Any) -> wire.PluginInfo:
        return self._info

    async def _notify(
        self, status: wire.RegistrationStatus, _: Any
    ) -> wire.RegistrationStatusResponse:
        if status.plugin_registered:
            LOG.info("registered with the node")
            self.is_registered.set()
        else:
            self.is_registered.clear()
            fact = status.error[:1024] or "no reason given"
            self._report(RegistrationError(f"the node refused the driver: {fact}"))
        return wire.RegistrationStatusResponse()
