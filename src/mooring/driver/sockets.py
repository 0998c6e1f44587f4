"""Sockets of a driver: served, found again by the node, and removed at the end."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from mooring.driver.errors import StartError
from mooring.wire.services import Method, new_server, serve

GRACE_S = 5.0  # for calls under way, when a driver stops


@asynccontextmanager
async def served(path: Path, methods: Mapping[Method, Callable[..., Any]]) -> AsyncIterator[None]:
    """Serve methods at a socket for as long as a block lasts, or raise StartError."""
    _make_way(path)
    server = new_server()
    server.add_generic_rpc_handlers((serve(methods),))
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as error:
        raise StartError(f"cannot serve at {path}: {error}") from None
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE_S)
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _make_way(path: Path) -> None:
    """Remove the socket that an earlier run left, and nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.lstat().st_mode
        if not stat.S_ISSOCK(mode):
            raise StartError(f"{path} is in the way: it is no socket")
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
