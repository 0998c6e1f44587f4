"""Registers the node, and then reports again and again that it is alive.

register ─► node exists ─► status, when it changed or five minutes have passed
                       └─► lease, every ten seconds
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from mooring.api.coordination import Lease
from mooring.api.core import Node
from mooring.api.timestamp import Timestamp
from mooring.client.contract import Client
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError
from mooring.client.objects import is_older
from mooring.client.writes import Create, Update
from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.node.node_status import (
    LEASES,
    RENEW_S,
    NodeDescription,
    PluginResource,
    lease_of,
    missing_labels,
    new_node,
    patch_of,
    status_of,
)

LOG = logging.getLogger(__name__)

BACKOFF = Backoff(first_s=0.2, longest_s=7.0)


class Heartbeat:
    """Registers a node and keeps it alive in the cluster."""

    def __init__(
        self,
        client: Client,
        description: NodeDescription,
        *,
        clock: Clock,
        more: Callable[[], Mapping[str, PluginResource]] = dict,
        trouble: Callable[[], str] = str,
    ) -> None:
        self._client = client
        self._description = description
        self._clock = clock
        self._more = more
        self._trouble = trouble
        self._is_due = asyncio.Event()
        self._lease: Lease | None = None
        self.node: Node | None = None  # as written last, or seen

    def see(self, node: Node | None) -> None:
        """Take in the Node object; a deleted one is not recreated."""
        if node is None or self.node is None or not is_older(node, self.node):
            self.node = node

    def report(self) -> None:
        """Write the status soon: something changed."""
        self._is_due.set()

    async def register(self) -> Node:
        """Return the node once it is registered, with its status; raises ClientError."""
        self.node = found = await self._register()
        await self._report()
        await self._renew()
        return self.node or found

    async def run(self) -> None:
        """Renew status and lease until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(self._report, "the status", self._is_due))
            tasks.create_task(self._repeat(self._renew, "the lease", asyncio.Event()))

    async def _repeat(
        self, work: Callable[[], Awaitable[None]], what: str, is_due: asyncio.Event
    ) -> None:
        failures = 0
        while True:
            delay_s = BACKOFF.delay_s(failures) if failures else RENEW_S
            timer = self._clock.call_later(delay_s, is_due.set)
            try:
                await is_due.wait()
            finally:
                timer.cancel()
            is_due.clear()
            try:
                await work()
                failures = 0
            except ClientError as error:
                failures += 1
                if failures in (1, 10):
                    LOG.warning("%s of the node cannot be written: %s; trying again", what, error)

    async def _register(self) -> Node:
        node = new_node(self._description)
        found: Node | None
        try:
            found = await self._client.write(Create(node))
        except AlreadyExistsError:
            found = await self._client.get(Node, "", node.metadata.name)
        if found is None:
            raise ConflictError("the node was deleted while it registered")
        patch = missing_labels(found, self._description)
        if patch is not None:
            found = await self._client.write(patch)
        assert found is not None
        return found

    async def _report(self) -> None:
        now = Timestamp(self._clock.now())
        if self.node is None:
            return
        status = status_of(
            self.node, self._description, more=self._more(), trouble=self._trouble(), now=now
        )
        patch = patch_of(self.node, status, now)
        if patch is None:
            return
        try:
            self.node = await self._client.write(patch)
        except ConflictError:
            self.node = await self._client.get(Node, "", self._description.name)
            self._is_due.set()

    async def _renew(self) -> None:
        if self.node is None:
            return
        name, now = self._description.name, Timestamp(self._clock.now())
        if self._lease is None:
            self._lease = await self._client.get(Lease, LEASES, name)
        wanted = lease_of(self.node, self._lease, now)
        try:
            write = Create(wanted) if self._lease is None else Update(wanted)
            self._lease = await self._client.write(write)
        except ClientError:
            self._lease = None  # read again the next time
            raise
