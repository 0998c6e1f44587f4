"""Counts devices in use, and devices left over, during a simulation.

# held: how many claims have a device, with or without a share of it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from moorage.api.resource.v1 import ResourceClaim
from moorage.api.tolerations import DeviceName
from moorage.claims.pod_claims import ClaimFeatures
from moorage.insight.fit.device_supply import supplies_of
from moorage.insight.fit.limits import leftovers_of
from moorage.insight.fit.replicas import Model, ReplicaFiller, Replicas
from moorage.insight.plan.planner import unwatched
from moorage.insight.simulation.result import DriverUse
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.scheduling_cycle import Pending

FILLED_MAX = 2_000  # of one workload; larger clusters are not filled
MEASURED_MAX = 20  # of a trace


class DeviceUse:
    """Counts devices in use, weighted by time."""

    def __init__(self, cluster: Cluster) -> None:
        self._totals = _published(cluster)
        self._held: Counter[DeviceName] = Counter()
        self.used: Counter[str] = Counter()  # devices by driver
        self._peaks: Counter[str] = Counter()
        self._device_s: Counter[str] = Counter()
        self._at_s = 0.0
        self.take(cluster.claims.values())

    def take(self, claims: Iterable[ResourceClaim]) -> None:
        """Count devices that claims get as in use."""
        for device in _devices(claims):
            self._held[device] += 1
            if self._held[device] == 1:
                self.used[device.driver] += 1
        for driver, number in self.used.items():
            self._peaks[driver] = max(self._peaks[driver], number)

    def give_back(self, claims: Iterable[ResourceClaim]) -> None:
        """Count devices of claims as free, unless other claims share them."""
        for device in _devices(claims):
            self._held[device] -= 1
            if self._held[device] == 0:
                del self._held[device]
                self.used[device.driver] -= 1

    def advance(self, at_s: float) -> None:
        """Advance time with the devices that are in use."""
        for driver, number in self.used.items():
            self._device_s[driver] += number * (at_s - self._at_s)  # type: ignore[assignment]
        self._at_s = at_s

    def drivers(self) -> tuple[DriverUse, ...]:
        """Return the use of each driver's devices so far."""
        return tuple(
            DriverUse(driver, total, self._mean_percent(driver, total), self._peaks[driver])
            for driver, total in sorted(self._totals.items())
        )

    def _mean_percent(self, driver: str, total: int) -> float:
        whole = total * self._at_s
        return round(100 * self._device_s[driver] / whole, 1) if whole else 0.0


def _published(cluster: Cluster) -> Counter[str]:
    devices = {
        DeviceName(each.spec.driver, each.spec.pool.name, device.name)
        for each in cluster.slices.values()
        for device in each.spec.devices or ()
    }
    return Counter(device.driver for device in devices)


def _devices(claims: Iterable[ResourceClaim]) -> Iterable[DeviceName]:
    for claim in claims:
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            if not result.admin_access:
                yield DeviceName(result.driver, result.pool, result.device)


class LeftOver:
    """Fills a cluster with a workload to see which devices stay free, and empties it again."""

    def __init__(self, cluster: Cluster, models: Mapping[str, Model], around: Snapshot) -> None:
        self._cluster = cluster
        self._features = cluster.features.claims
        # No running pod can have this name.
        self._models = {
            name: _renamed(model, f"{model.base}-left-over")
            for name, model in list(models.items())[:MEASURED_MAX]
        }
        self.notes: list[str] = []
        if len(models) > MEASURED_MAX:
            which = f"the first {MEASURED_MAX} workloads of {len(models):,}"
            self.notes.append(f"left-over devices are measured for {which} only")
        self._around = around
        self._seen: tuple[int, dict[str, float | None]] | None = None

    def percents(self, version: int) -> dict[str, float | None]:
        """Return the percentage of left-over devices by workload; changes increase `version`."""
        if self._seen is None or self._seen[0] != version:
            self._seen = version, {name: self._of(each) for name, each in self._models.items()}
        return self._seen[1]

    def _of(self, model: Model) -> float | None:
        features: ClaimFeatures = self._features
        filler = ReplicaFiller(self._cluster, Replicas(model, self._around, features))
        filler.run(FILLED_MAX, unwatched, in_any_order=True)
        refused = filler.refused
        found: float | None = None
        if refused is not None and refused.ready is not None and _is_about_nodes(refused.pending):
            supplies = supplies_of(refused.ready, model.shared)
            found = min((each.percent for each in leftovers_of(supplies, {})), default=None)
        filler.empty()
        return found


def _is_about_nodes(pending: Pending) -> bool:
    return pending.diagnosis.pre_filter_status is None


def _renamed(model: Model, base: str) -> Model:
    return Model(model.title, base, model.pod, model.templates)
