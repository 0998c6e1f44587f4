"""A program that stands alone: it asks a server elsewhere, leads or waits, and can be watched.

1. The server is asked something small, so that a wrong address or user is told at once.
2. With a lease, the program waits until it leads; one that loses the lead ends.
3. It works until cancelled; then the lease is given back.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Protocol

import msgspec
from msgspec import Struct

from mooring.api.core import Namespace
from mooring.client.apiclient import ApiClient
from mooring.client.contract import Client
from mooring.client.election import Election, Terms
from mooring.client.errors import ClientError
from mooring.client.informers import Informers
from mooring.client.transport import Request
from mooring.cluster.programs import ProgramContext
from mooring.cluster.status_server import ListenAddress, health_pages, serving
from mooring.kit.collector import calm_collector


class LeaderLease(Struct, frozen=True):
    """The lease by which a program becomes the only one of its kind."""

    namespace: str
    name: str
    terms: Terms = Terms()


class LeaseLostError(Exception):
    """Another program of the same kind leads by now, or nobody could be asked."""


class Runnable(Protocol):
    """Something to run with a client."""

    informers: Informers

    async def run(self) -> None:
        """Work until cancelled."""

    @property
    def metrics_pages(self) -> Mapping[str, Callable[[], str]]:
        """What it counts, as Prometheus reads it, by the paths of pages."""


class _Version(Struct):
    gitVersion: str = ""  # noqa: N815 - as servers write it


async def check_connection(client: Client) -> None:
    """Return once the server has answered, or raise ClientError for why it does not."""
    await client.get(Namespace, "", "kube-system")


async def empties_namespaces(client: ApiClient) -> bool:
    """Tell whether the server empties deleted namespaces by itself, as only Mooring's does."""
    try:
        answer = await client.ask(Request("GET", "/version"))
        return "+mooring" in msgspec.json.decode(answer.body, type=_Version).gitVersion
    except (ClientError, msgspec.DecodeError):
        return False


async def run_as_leader(
    program: Runnable,
    client: Client,
    around: ProgramContext,
    *,
    lead: LeaderLease | None,
    place: ListenAddress | None,
    tell: Callable[[str], None],  # how far it has come, line by line
    working: str,
) -> None:
    """Run a program until cancelled; `working` is told once it is at work.

    May raise OSError for a place that cannot be listened at, and LeadLostError.
    """
    election = None if lead is None else _election(client, lead, around)
    async with AsyncExitStack() as stack:
        if place is not None:
            pages = health_pages(program.metrics_pages, lambda: _troubles(program, election))
            url = await stack.enter_async_context(serving(place, pages))
            tell(f"metrics at {url}/metrics")
        if election is None or lead is None:
            await _work(program, tell, working)
            return
        tell(f"waiting for the lease {lead.namespace}/{lead.name}")
        await election.run(lambda: _work(program, tell, working))
        raise LeaseLostError(f"the lease {lead.namespace}/{lead.name} was lost")


def _election(client: Client, lead: LeaderLease, around: ProgramContext) -> Election:
    return Election(
        client,
        namespace=lead.namespace,
        name=lead.name,
        identity=f"{socket.gethostname()}_{os.getpid()}_{around.fresh.share_id()}",
        random=around.random,
        terms=lead.terms,
        clock=around.clock,
    )


def _troubles(program: Runnable, election: Election | None) -> list[str]:
    """Return why a program is not at work; one that waits for its turn is ready."""
    if election is not None and not election.is_leader:
        return []
    found = [f"{kind}: {cause}" for kind, cause in program.informers.causes.items()]
    return found if not program.informers.synced else []


async def _work(program: Runnable, tell: Callable[[str], None], working: str) -> None:
    async def announce() -> None:
        await program.informers.wait_synced()
        calm_collector()
        tell(working)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(announce())
        tasks.create_task(program.run())
