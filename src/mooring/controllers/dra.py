"""The controllers of Dynamic Resource Allocation, as the gates have them, and their metrics."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.gates import Gate, Gates
from mooring.cel.device import DeviceCompiler
from mooring.client.objects import Objects
from mooring.controllers.controller import Controller
from mooring.controllers.devicetaints import DeviceTaints, TaintMetrics
from mooring.controllers.poolstatus import PoolStatusRequests, RequestMetrics
from mooring.controllers.resourceclaims import (
    ClaimMetrics,
    ClaimReleases,
    GroupClaims,
    PodClaims,
)
from mooring.kit.metrics import Family


class DraMetrics:
    """What all of them count."""

    def __init__(self) -> None:
        self.claims = ClaimMetrics()
        self.taints = TaintMetrics()
        self.requests = RequestMetrics()

    def families(self, objects: Objects) -> Iterator[Family]:
        """Give all metrics; those of claims are counted when they are read."""
        yield from self.claims.families(objects)
        yield from self.taints.families()
        yield from self.requests.families()


def dra_controllers(
    gates: Gates, metrics: DraMetrics, compiler: DeviceCompiler | None = None
) -> tuple[Controller, ...]:
    """Return the controllers that the gates switch on."""
    found: list[Controller] = [PodClaims(gates, metrics.claims), ClaimReleases(gates)]
    if gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
        found.append(GroupClaims(gates, metrics.claims))
    if gates.enabled(Gate.DRA_DEVICE_TAINTS):
        found.append(DeviceTaints(gates, metrics.taints, compiler))
    if gates.enabled(Gate.DRA_RESOURCE_POOL_STATUS):
        found.append(PoolStatusRequests(gates, metrics.requests, compiler))
    return tuple(found)
