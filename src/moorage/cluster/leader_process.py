"""A program of the control plane in a process of its own, with leader election and status pages.

1. A small request to the server reports a wrong address or user at once.
2. With a lease, the program waits until it is the leader; it stops when it loses the lease.
3. It works until cancelled, then releases the lease.
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

from moorage.api.core import Namespace
from moorage.client.api_client import ApiClient
from moorage.client.contract import Client, Request
from moorage.client.errors import ClientError
from moorage.client.informer_factory import InformerFactory
from moorage.client.leader_election import LeaderElector, LeaseTimings
from moorage.cluster.programs import ProgramContext
from moorage.cluster.status_access import StatusAccess
from moorage.cluster.status_server import ListenAddress, health_pages, serving
from moorage.kit.process_memory import relax_garbage_collector


class LeaderLease(Struct, frozen=True):
    """The lease that makes a program the only active one of its kind."""

    namespace: str
    name: str
    terms: LeaseTimings = LeaseTimings()


class LeaseLostError(Exception):
    """Another program acquired the lease, or the lease could not be renewed."""


class Runnable(Protocol):
    """A program that works with a client and informers."""

    informers: InformerFactory

    async def run(self) -> None:
        """Work until cancelled."""

    @property
    def metrics_pages(self) -> Mapping[str, Callable[[], str]]:
        """The metrics in Prometheus' text format, by path."""


class _Version(Struct):
    gitVersion: str = ""  # noqa: N815 - as servers write it


async def check_connection(client: Client) -> None:
    """Return once the server has answered, or raise ClientError."""
    await client.get(Namespace, "", "kube-system")


async def empties_namespaces(client: ApiClient) -> bool:
    """Return whether the server empties deleted namespaces itself; only Moorage's does."""
    try:
        answer = await client.send(Request("GET", "/version"))
        return "+moorage" in msgspec.json.decode(answer.body, type=_Version).gitVersion
    except (ClientError, msgspec.DecodeError):
        return False


async def run_as_leader(
    program: Runnable,
    client: Client,
    context: ProgramContext,
    *,
    lead: LeaderLease | None,
    place: ListenAddress | None,
    tell: Callable[[str], None],  # how far it has come, line by line
    working: str,
    openmetrics: Mapping[str, Callable[[], str]] | None = None,  # metrics once more, by path
    troubles: Callable[[], Mapping[str, str]] = dict,  # besides kinds that cannot be read
) -> None:
    """Run a program until cancelled, and report `working` once it works.

    Raises OSError if the address cannot be listened on, and LeaseLostError.
    """
    election = None if lead is None else _election(client, lead, context)
    async with AsyncExitStack() as stack:
        if place is not None:
            pages = health_pages(
                program.metrics_pages,
                lambda: _troubles(program, election) or troubles(),
                openmetrics,
            )
            access = StatusAccess(client, monotonic=context.clock.monotonic)
            url = await stack.enter_async_context(serving(place, pages, access))
            tell(f"metrics at {url}/metrics")
        if election is None or lead is None:
            await _work(program, tell, working)
            return
        tell(f"waiting for the lease {lead.namespace}/{lead.name}")
        await election.run(lambda: _work(program, tell, working))
        raise LeaseLostError(f"the lease {lead.namespace}/{lead.name} was lost")


def _election(client: Client, lead: LeaderLease, context: ProgramContext) -> LeaderElector:
    return LeaderElector(
        client,
        namespace=lead.namespace,
        name=lead.name,
        identity=f"{socket.gethostname()}_{os.getpid()}_{context.fresh.share_id()}",
        random=context.random,
        terms=lead.terms,
        clock=context.clock,
    )


def _troubles(program: Runnable, election: LeaderElector | None) -> Mapping[str, str]:
    """Return the kinds that a program lacks, and why; one that waits for its lease is ready."""
    if election is not None and not election.is_leader:
        return {}
    return {} if program.informers.synced else program.informers.causes


async def _work(program: Runnable, tell: Callable[[str], None], working: str) -> None:
    async def announce() -> None:
        await program.informers.wait_for_sync()
        relax_garbage_collector()
        tell(working)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(announce())
        tasks.create_task(program.run())
