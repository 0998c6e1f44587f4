"""The socket at which device plugins come: `device-plugins/kubelet.sock`."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any, Protocol

from mooring.node.device_plugins.plugin import PluginError
from mooring.node.device_plugins.readings import check_endpoint
from mooring.wire import deviceplugin_pb2 as wire
from mooring.wire import grpc, services

NAME = "kubelet.sock"

_LOG = logging.getLogger(__name__)


class Registrar(Protocol):
    """Who takes plugins in."""

    async def register(self, resource: str, socket: Path, versions: tuple[str, ...]) -> None:
        """Connect to a plugin; ValueError or PluginError if that cannot be."""


class Registration:
    """Serves the socket."""

    def __init__(self, folder: Path, registrar: Registrar) -> None:
        self._folder = folder
        self._registrar = registrar
        self._server = services.new_server()

    async def start(self) -> None:
        """Clear the folder of old sockets, so that plugins come again, and serve."""
        path = self._folder / NAME
        length = len(str(path).encode())
        if length > services.SOCKET_PATH_BYTES_MAX:
            raise OSError(f"{path}: {length} bytes are too long for the path of a socket")
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        clear_sockets(self._folder)
        handlers = services.serve({services.REGISTER: self._register})
        self._server.add_generic_rpc_handlers((handlers,))
        self._server.add_insecure_port(f"unix:{path}")
        await self._server.start()

    async def stop(self) -> None:
        """Serve no more."""
        await self._server.stop(None)

    async def _register(
        self, request: wire.RegisterRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.Empty:
        try:
            check_endpoint(request.endpoint)
            socket = self._folder / request.endpoint
            await self._registrar.register(request.resource_name, socket, (request.version,))
        except (ValueError, PluginError) as error:
            _LOG.warning("device plugin of %s refused: %s", request.resource_name[:256], error)
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return wire.Empty()


def clear_sockets(folder: Path) -> None:
    """Remove the sockets in a folder, which are of a life before, and nothing else."""
    for path in folder.iterdir():
        try:
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        except FileNotFoundError:
            continue
