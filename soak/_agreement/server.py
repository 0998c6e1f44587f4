"""A server in this process that has the objects of a world, for what asks `--live`.

The objects are written into its store, as a server of before left them, so that they keep their
uids, states and creation times.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from moorage.api.catalogue import SERVED
from moorage.api.codec import encode_stored_json
from moorage.api.core.namespace import ResourceQuota
from moorage.api.timestamp import Timestamp
from moorage.apiserver.server import assembled, listening
from moorage.apiserver.settings import Settings
from moorage.store.contract import Store
from moorage.store.memory import open_memory
from soak._agreement.worlds import NOW

START_S: Final = 60.0
_KINDS: Final = {kind.struct: kind for kind in SERVED if kind.hub_version == kind.api_version}


@contextmanager
def running(folder: Path, objects: Iterable[Any]) -> Iterator[str]:
    """Serve the objects during a block; yield the kubeconfig of the server's administrator."""
    kubeconfig: Future[str] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def serve() -> None:
        try:
            loop.run_until_complete(_serve(folder, tuple(objects), kubeconfig, stop))
        except Exception as error:
            if kubeconfig.done():
                raise
            kubeconfig.set_exception(error)
        finally:
            loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield kubeconfig.result(START_S)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _serve(
    folder: Path, objects: tuple[Any, ...], kubeconfig: Future[str], stop: asyncio.Event
) -> None:
    settings = Settings(folder / "server", port=0)
    now = Timestamp.parse(NOW)
    async with (
        open_memory() as store,
        assembled(settings, now=lambda: now, store=store) as server,
    ):
        quotas: list[str] = []
        for value in objects:
            kind = _KINDS[type(value)]
            resource = server.context.resources.of(kind.group, kind.plural)
            key = resource.key(value.metadata.namespace, value.metadata.name)
            if isinstance(value, ResourceQuota):
                quotas.append(key)
            if await store.get(key) is None:
                await store.create(key, encode_stored_json(value))
        await _counted(store, quotas)
        async with listening(server, settings):
            kubeconfig.set_result(str(settings.data_dir / "kubeconfig"))
            await stop.wait()


async def _counted(store: Store, quotas: Iterable[str]) -> None:
    """Wait until the server has counted what the quotas limit."""
    async with asyncio.timeout(START_S):
        for key in quotas:
            while (entry := await store.get(key)) is None or b'"used"' not in entry.value:
                await asyncio.sleep(0.01)
