"""Counts of a cluster's nodes, pods and devices, for `moor status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from moorage.api.core import Node, Pod
from moorage.api.core.node import READY
from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.client.contract import Client, list_all
from moorage.cluster.simulation.machines import is_simulated


class Overview(Struct, frozen=True):
    """Counts of nodes, pods and devices."""

    nodes: int
    nodes_ready: int
    nodes_simulated: int
    pods: dict[str, int]  # by phase
    devices: int
    devices_in_use: int
    by_driver: dict[str, tuple[int, int]] = {}  # devices in use, and all

    @property
    def drivers(self) -> str:
        """Devices in use of each driver, as text."""
        return ", ".join(
            f"{name} {used:,}/{all_:,}" for name, (used, all_) in self.by_driver.items()
        )

    def lines(self) -> list[tuple[str, str]]:
        """Return the counts as text, each with its title."""
        pods = ", ".join(
            f"{count_objects:,} {phase.lower()}" for phase, count_objects in self.pods.items()
        )
        simulated = f", {self.nodes_simulated:,} of them simulated" if self.nodes_simulated else ""
        return [
            ("nodes", f"{self.nodes_ready:,} of {self.nodes:,} ready{simulated}"),
            ("pods", pods or "none"),
            ("devices", f"{self.devices_in_use:,} of {self.devices:,} in use"),
        ]


async def fetch_overview(client: Client) -> Overview:
    """Return the counts of a cluster, or raise ClientError."""
    found = {}
    for struct in (Node, Pod, ResourceSlice, ResourceClaim):
        found[struct] = (await list_all(client, struct)).values
    return count_objects(found[Node], found[Pod], found[ResourceSlice], found[ResourceClaim])


def count_objects(
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
) -> Overview:
    """Return the counts of these objects."""
    nodes = tuple(nodes)
    phases = Counter(each.status.phase or "Pending" for each in pods)
    specs = [each.spec for each in slices]
    published = {(s.driver, s.pool.name, each.name) for s in specs for each in s.devices or ()}
    there = Counter(driver for driver, _, _ in published)
    taken = {device for claim in claims for device in _devices(claim)} & published
    used = Counter(driver for driver, _, _ in taken)
    return Overview(
        nodes=len(nodes),
        nodes_ready=sum(map(_is_ready, nodes)),
        nodes_simulated=sum(map(is_simulated, nodes)),
        pods=dict(sorted(phases.items())),
        devices=there.total(),
        devices_in_use=len(taken),
        by_driver={name: (used[name], there[name]) for name in sorted(there)},
    )


def _is_ready(node: Node) -> bool:
    return any(each.type == READY and each.status == "True" for each in node.status.conditions)


def _devices(claim: ResourceClaim) -> Iterable[tuple[Any, ...]]:
    allocation = claim.status.allocation
    for each in allocation.devices.results if allocation is not None else ():
        if not each.admin_access:
            yield each.driver, each.pool, each.device
