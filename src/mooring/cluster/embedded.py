"""A whole cluster within the process: server, controllers and scheduler, without a network.

Each program asks the server as the user that it is in a real cluster, so that roles hold here, too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mooring.api.gates import Gates
from mooring.api.timestamp import Timestamp
from mooring.apiserver.app import PEER
from mooring.apiserver.credentials import ADMIN
from mooring.apiserver.server import Assembled, assembled
from mooring.apiserver.settings import Settings
from mooring.client.apiclient import ApiClient
from mooring.client.connecting import Tokens, call_client
from mooring.client.inprocess import InProcessTransport
from mooring.cluster.controller_accounts import ControllerClients
from mooring.cluster.programs import (
    CONTROLLERS_AGENT,
    SCHEDULER_AGENT,
    ControllerManager,
    ProgramContext,
    SchedulerProgram,
    run_all,
)
from mooring.kit.clock import Clock
from mooring.scheduler.live import Config, Explain
from mooring.store.contract import Store


class EmbeddedCluster(NamedTuple):
    """A cluster that runs, and its parts."""

    server: Assembled
    admin: ApiClient  # may do everything
    scheduling: SchedulerProgram
    controlling: ControllerManager
    accounts: ControllerClients  # as which the controllers write

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
    around: ProgramContext,
    *,
    config: Config | None = None,
    explain: Explain = lambda *_: "",
    server_gates: Gates | None = None,
    store: Store | None = None,
    server_ends_namespaces: bool = True,
) -> AsyncIterator[EmbeddedCluster]:
    """Run a cluster for as long as a block lasts, which begins when all programs are at work.

    The folder has what the server is known by, and the objects unless there is a store for them.
    The server may have gates of its own, as while a cluster is upgraded, and may leave it to a
    controller to empty namespaces, as that of Kubernetes does.
    """
    settings = Settings(
        folder,
        gates=server_gates or around.gates,
        has_roles=True,
        ends_namespaces=server_ends_namespaces,
    )
    clock = around.clock

    def now() -> Timestamp:
        return Timestamp(clock.now()).truncated()

    async with assembled(settings, now=now, store=store) as server:
        scheduler = _client(server, "scheduler", manager=SCHEDULER_AGENT)
        manager = _client(server, "controller-manager", manager=CONTROLLERS_AGENT)
        accounts = ControllerClients(manager, partial(_account_client, server, clock), clock=clock)
        assert server.credentials is not None
        authority = server.credentials.authority.certificate.decode()
        cluster = EmbeddedCluster(
            server,
            _client(server, ADMIN),
            SchedulerProgram(scheduler, around, config=config, explain=explain),
            ControllerManager(
                manager,
                around,
                authority=authority,
                client_of=accounts.client_of,
                ends_namespaces=not server_ends_namespaces,
            ),
            accounts,
        )
        task = asyncio.create_task(run_all(cluster.scheduling, cluster.controlling))
        try:
            await cluster.scheduling.informers.wait_synced()
            await cluster.controlling.informers.wait_synced()
            yield cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _client(
    server: Assembled, name: str, headers: Mapping[str, str] | None = None, *, manager: str = ""
) -> ApiClient:
    scope = _scope(server, name)
    return call_client(server.application, manager=manager or name, headers=headers, scope=scope)


def _account_client(server: Assembled, clock: Clock, tokens: Tokens) -> ApiClient:
    return call_client(server.application, manager=CONTROLLERS_AGENT, tokens=tokens, clock=clock)


def _scope(server: Assembled, name: str) -> dict[str, bytes]:
    """Return what says in the scope of a request whom it is from."""
    assert server.credentials is not None
    text = server.credentials.clients[name].certificate.decode()
    return {PEER: ssl.PEM_cert_to_DER_cert(text)}
