"""A cluster in one process without a network: server, controllers and scheduler.

The programs call the server directly, as in `control_plane`; other clients call its ASGI
application. Each program authenticates as the user that it has in a real cluster, so that RBAC
applies here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import ADMIN
from moorage.apiserver.http.app import PEER
from moorage.apiserver.server import Assembled, assembled
from moorage.apiserver.settings import Settings
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import in_process_client
from moorage.client.in_process import InProcessTransport
from moorage.cluster.control_plane import account_client, program_client
from moorage.cluster.programs import (
    CONTROLLERS_AGENT,
    SCHEDULER_AGENT,
    ControllerClients,
    ControllerProgram,
    ProgramContext,
    SchedulerProgram,
    run_all,
)
from moorage.scheduler.live import Explain, SchedulerConfig
from moorage.store.contract import Store


class EmbeddedCluster(NamedTuple):
    """A running cluster and its parts."""

    server: Assembled
    admin: ApiClient  # may do everything
    scheduling: SchedulerProgram
    controlling: ControllerProgram
    accounts: ControllerClients  # as which the controllers write

    def client_of(self, name: str, headers: Mapping[str, str] | None = None) -> ApiClient:
        """Return a client for one of the users with a certificate."""
        return _client(self.server, name, headers)

    def transport_of(
        self, name: str = ADMIN, headers: Mapping[str, str] | None = None
    ) -> InProcessTransport:
        """Return a raw transport for one of these users."""
        return InProcessTransport(
            self.server.application, headers=headers, scope=_scope(self.server, name), agent=name
        )


@asynccontextmanager
async def embedded(
    folder: Path,
    context: ProgramContext,
    *,
    config: SchedulerConfig | None = None,
    explain: Explain = lambda *_: "",
    server_gates: Gates | None = None,
    store: Store | None = None,
    server_ends_namespaces: bool = True,
) -> AsyncIterator[EmbeddedCluster]:
    """Run a cluster during a block, which begins once all programs are working.

    The directory holds the server's credentials, and its objects unless the caller passes a store.
    The server may have feature gates of its own, as during an upgrade, and may leave emptying
    namespaces to a controller, as Kubernetes does.
    """
    settings = Settings(
        folder,
        gates=server_gates or context.gates,
        has_rbac=True,
        runs_namespace_controller=server_ends_namespaces,
    )
    clock = context.clock

    def now() -> Timestamp:
        return Timestamp(clock.now()).truncated()

    async with assembled(settings, now=now, store=store) as server:
        scheduler = program_client(server, "scheduler", SCHEDULER_AGENT)
        manager = program_client(server, "controller-manager", CONTROLLERS_AGENT)
        accounts = ControllerClients(manager, partial(account_client, server, clock), clock=clock)
        assert server.credentials is not None
        authority = server.credentials.authority.certificate.decode()
        cluster = EmbeddedCluster(
            server,
            _client(server, ADMIN),
            SchedulerProgram(scheduler, context, config=config, explain=explain),
            ControllerProgram(
                manager,
                context,
                authority=authority,
                client_of=accounts.client_of,
                ends_namespaces=not server_ends_namespaces,
            ),
            accounts,
        )
        task = asyncio.create_task(run_all(cluster.scheduling, cluster.controlling))
        try:
            await cluster.scheduling.informers.wait_for_sync()
            await cluster.controlling.informers.wait_for_sync()
            yield cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _client(server: Assembled, name: str, headers: Mapping[str, str] | None = None) -> ApiClient:
    scope = _scope(server, name)
    return in_process_client(server.application, manager=name, headers=headers, scope=scope)


def _scope(server: Assembled, name: str) -> dict[str, bytes]:
    """Return the headers of an ASGI scope that authenticate a user."""
    assert server.credentials is not None
    return {PEER: server.credentials.client_certificate(name)}
