"""A whole cluster within the process: server, controllers and scheduler, without a network.

Each program asks the server as the user that it is in a real cluster, so that roles hold here, too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from mooring.api.timestamp import Timestamp
from mooring.apiserver.app import PEER
from mooring.apiserver.credentials import ADMIN
from mooring.apiserver.server import Assembled, assembled
from mooring.apiserver.settings import Settings
from mooring.client.apiclient import ApiClient
from mooring.client.connecting import call_client
from mooring.client.inprocess import InProcessTransport
from mooring.cluster.programs import Controlling, Scheduling, Surroundings, run_all
from mooring.scheduler.live import Config, Explain
from mooring.store.contract import Store


class EmbeddedCluster(NamedTuple):
    """A cluster that runs, and its parts."""

    server: Assembled
    admin: ApiClient  # may do everything
    scheduling: Scheduling
    controlling: Controlling

    def client_of(self, name: str, headers: Mapping[str, str] | None = None) -> ApiClient:
        """Return a client for one of the users that the server has certificates of."""
        return _client(self.server, name, headers)

    def transport_of(
        self, name: str = ADMIN, headers: Mapping[str, str] | None = None
    ) -> InProcessTransport:
        """Return what carries requests of one of these users as they are."""
        return InProcessTransport(
            self.server.application, headers=headers, scope=_scope(self.server, name), agent=name
        )


@asynccontextmanager
async def embedded(
    folder: Path,
    around: Surroundings,
    *,
    config: Config | None = None,
    explain: Explain = lambda *_: "",
    store: Store | None = None,
) -> AsyncIterator[EmbeddedCluster]:
    """Run a cluster for as long as a block lasts, which begins when all programs are at work.

    The folder has what the server is known by, and the objects unless there is a store for them.
    """
    settings = Settings(folder, gates=around.gates, has_roles=True)
    clock = around.clock

    def now() -> Timestamp:
        return Timestamp(clock.now()).truncated()

    async with assembled(settings, now=now, store=store) as server:
        scheduler, manager = _client(server, "scheduler"), _client(server, ADMIN)
        assert server.credentials is not None
        authority = server.credentials.authority.certificate.decode()
        cluster = EmbeddedCluster(
            server,
            _client(server, ADMIN),
            Scheduling(scheduler, around, config=config, explain=explain),
            Controlling(manager, around, authority=authority),
        )
        task = asyncio.create_task(run_all(cluster.scheduling, cluster.controlling))
        try:
            await cluster.scheduling.informers.wait_synced()
            await cluster.controlling.informers.wait_synced()
            yield cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _client(server: Assembled, name: str, headers: Mapping[str, str] | None = None) -> ApiClient:
    scope = _scope(server, name)
    return call_client(server.application, manager=name, headers=headers, scope=scope)


def _scope(server: Assembled, name: str) -> dict[str, bytes]:
    """Return what says in the scope of a request whom it is from."""
    assert server.credentials is not None
    text = server.credentials.clients[name].certificate.decode()
    return {PEER: ssl.PEM_cert_to_DER_cert(text)}
