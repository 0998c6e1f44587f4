"""The pool status controller: answers ResourcePoolStatusRequests, and deletes old ones.

The status of a request lists the pools of its driver: how many devices each has and has left. Each
request is answered once. A request about a pool that is still being published waits for it: it is
retried some times, and whenever a slice of its driver changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.api.core.placement import NO_EXECUTE, NO_SCHEDULE
from moorage.api.gates import Gate, Gates
from moorage.api.meta import Condition
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Device,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.resource.v1alpha3 import (
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from moorage.api.timestamp import Timestamp
from moorage.api.tolerations import DeviceName
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.claims.taint_evictions import RuleSelects
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, RequeueAfter, Target, Update, Write
from moorage.controllers.controller import (
    Answers,
    Controller,
    ObjectChange,
    ReconcileFailed,
    Step,
    WriteRefused,
)
from moorage.controllers.metrics import RequestMetrics
from moorage.controllers.pool_capacity import PoolUsage, capacity_summary
from moorage.controllers.tainted_devices import meaning

POOLS_MAX = 100  # where the request does not say
TEXT_MAX = 256
INCOMPLETE = "PoolIncomplete:"
ANSWERED_S = 3600.0
PENDING_S = 24 * 3600.0
ATTEMPTS_MAX = 6  # the first, and five more


class _Used:
    """What claims have of each pool; those with admin access look on and take nothing."""

    def __init__(self, claims: Iterable[ResourceClaim], driver: str) -> None:
        self.devices: dict[str, set[str]] = {}
        self.consumed: dict[str, dict[str, Quantity]] = {}
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                if result.driver != driver or result.admin_access:
                    continue
                self.devices.setdefault(result.pool, set()).add(result.device)
                consumed = self.consumed.setdefault(result.pool, {})
                for name, amount in (result.consumed_capacity or {}).items():
                    consumed[name] = consumed[name] + amount if name in consumed else amount


def pool_statuses(
    objects: Indexer,
    spec: ResourcePoolStatusRequestSpec,
    *,
    rules: Iterable[DeviceTaintRule],
    means: RuleSelects,
) -> tuple[PoolStatus, ...]:
    """Return the status of every requested pool, by name."""
    used = _Used(objects.list(ResourceClaim), spec.driver)
    blocking = [rule for rule in rules if rule.spec.taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    found = []
    for name, slices in sorted(_newest(objects, spec).items()):
        pool = PoolUsage(
            spec.driver,
            name,
            slices,
            used.devices.get(name, frozenset()),
            used.consumed.get(name, {}),
        )
        found.append(_pool_status(pool, spec.default_partition_type_attribute, blocking, means))
    return tuple(found)


def _newest(
    objects: Indexer, spec: ResourcePoolStatusRequestSpec
) -> dict[str, tuple[ResourceSlice, ...]]:
    """Return the slices of the newest generation of each pool, in the order of their names."""
    pools: dict[str, list[ResourceSlice]] = {}
    for each in sorted(objects.list(ResourceSlice), key=lambda each: each.metadata.name):
        name = each.spec.pool.name
        if each.spec.driver == spec.driver and spec.pool_name in (None, "", name):
            pools.setdefault(name, []).append(each)
    found = {}
    for name, slices in pools.items():
        generation = max(each.spec.pool.generation for each in slices)
        found[name] = tuple(each for each in slices if each.spec.pool.generation == generation)
    return found


def _pool_status(
    pool: PoolUsage, default_attribute: str | None, rules: list[DeviceTaintRule], means: RuleSelects
) -> PoolStatus:
    status = PoolStatus(
        driver=pool.driver,
        pool_name=pool.name,
        generation=pool.slices[0].spec.pool.generation,
        node_name=_node_name(pool),
    )
    wanted = pool.slices[0].spec.pool.resource_slice_count
    if len(pool.slices) < wanted:
        return replace(status, validation_error=_incomplete(pool, wanted))
    devices = pool.devices
    unavailable = sum(_is_unavailable(pool, device, rules, means) for device in devices)
    view = capacity_summary(pool, default_attribute)
    return replace(
        status,
        resource_slice_count=len(pool.slices),
        total_devices=len(devices),
        allocated_devices=len(pool.used),
        unavailable_devices=unavailable,
        available_devices=max(0, len(devices) - len(pool.used) - unavailable),
        partition_summary=view.partitions,
        shareable_summary=view.shareable,
        validation_error=view.error[:TEXT_MAX] or None,
    )


def _incomplete(pool: PoolUsage, wanted: int) -> str:
    seen = f"observed {len(pool.slices)}/{wanted} slices"
    generation = pool.slices[0].spec.pool.generation
    return f"{INCOMPLETE} pool {pool} is incomplete: {seen} at generation {generation}"[:TEXT_MAX]


def _node_name(pool: PoolUsage) -> str | None:
    names = {each.spec.node_name or "" for each in pool.slices}
    return (names.pop() or None) if len(names) == 1 else None


def _is_unavailable(
    pool: PoolUsage, device: Device, rules: list[DeviceTaintRule], means: RuleSelects
) -> bool:
    if any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in device.taints):
        return True
    name = DeviceName(pool.driver, pool.name, device.name)
    return any(means(rule, name, device) for rule in rules)


def request_status(
    pools: tuple[PoolStatus, ...], limit: int | None, now: Timestamp
) -> ResourcePoolStatusRequestStatus:
    """Return the answer; of too many pools the first ones count."""
    listed = pools[: POOLS_MAX if limit is None else limit]
    faulty = sum(pool.validation_error is not None for pool in listed)
    message = f"Calculated status for {len(listed)} pools"
    if faulty:
        message = f"{message} ({faulty} incomplete)"
    condition = Condition(
        type="Complete",
        status="True",
        reason="CalculationComplete",
        message=message,
        last_transition_time=now,
    )
    return ResourcePoolStatusRequestStatus(
        pool_count=len(pools), pools=listed, conditions=(condition,)
    )


def is_incomplete(status: ResourcePoolStatusRequestStatus) -> bool:
    """Return whether a driver is still publishing one of the pools."""
    return any((pool.validation_error or "").startswith(INCOMPLETE) for pool in status.pools)


def plan_request(
    objects: Indexer,
    key: ObjectKey,
    now: Timestamp,
    *,
    rules: Iterable[DeviceTaintRule],
    means: RuleSelects,
) -> list[Step]:
    """Return the answer to a request, or the end of an old one."""
    request = objects.get(ResourcePoolStatusRequest, *key)
    if request is None or request.metadata.deletion_timestamp is not None:
        return []
    left_s = _left_s(request, now)
    if left_s < 0:
        return [Delete(Target.of(request))]
    again = RequeueAfter(key, left_s + 1)
    if request.status is not None:
        return [again]
    pools = pool_statuses(objects, request.spec, rules=rules, means=means)
    status = request_status(pools, request.spec.limit, now)
    if is_incomplete(status):
        return [again, ReconcileFailed("incomplete pools detected", attempts_max=ATTEMPTS_MAX)]
    return [Update(replace(request, status=status), "status"), again]


def _left_s(request: ResourcePoolStatusRequest, now: Timestamp) -> float:
    """Return how long a request is still kept; less than nothing when it is too old."""
    since, kept_s = request.metadata.creation_timestamp, PENDING_S
    if request.status is not None:
        kept_s = ANSWERED_S
        ends = (c for c in request.status.conditions if c.type in ("Complete", "Failed"))
        end = next(ends, None)
        since = since if end is None else end.last_transition_time
    if since is None or since.is_zero:
        return kept_s
    return kept_s - (now.instant - since.instant).total_seconds()


class PoolStatusRequestController(Controller):
    """Answers requests."""

    name = "resourcepoolstatusrequest-controller"
    kinds = (
        ResourcePoolStatusRequest,
        ResourceSlice,
        ResourceClaim,
        DeviceTaintRule,
        DeviceClass,
    )
    optional = (ResourcePoolStatusRequest, DeviceTaintRule)
    workers = 1

    def __init__(self, gates: Gates, metrics: RequestMetrics | None = None) -> None:
        self._is_on = gates.enabled(Gate.DRA_RESOURCE_POOL_STATUS)
        self._has_rules = gates.enabled(Gate.DRA_DEVICE_TAINT_RULES)
        self._metrics = metrics or RequestMetrics()
        self._compiler = DeviceCompiler(CelFeatures(list_attributes=True))
        self._begun: dict[ObjectKey, Timestamp] = {}

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield requests that came, and those that wait for the slices of a driver."""
        match change.new:
            case ResourcePoolStatusRequest() as request if self._is_on:
                yield object_key(request)
            case ResourceSlice() as slice_ if self._is_on:
                for request in objects.list(ResourcePoolStatusRequest):
                    if request.status is None and request.spec.driver == slice_.spec.driver:
                        yield object_key(request)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the answer to a request."""
        self._begun[key] = now
        rules = list(objects.list(DeviceTaintRule)) if self._has_rules else []
        means = meaning(objects, self._compiler)
        steps = plan_request(objects, key, now, rules=rules, means=means)
        if not any(isinstance(step, Update) for step in steps):
            del self._begun[key]
        return steps

    def wrote(
        self, objects: Indexer, key: ObjectKey, write: Write, now: Timestamp
    ) -> Iterable[Step]:
        """Count an answer."""
        self._count(key, write, now)
        return ()

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Count an answer that was not taken."""
        del objects, refused  # not needed here
        if isinstance(write, Update):
            self._metrics.errors.inc(write.value.spec.driver)
        self._count(key, write, None)
        return ()

    def _count(self, key: ObjectKey, write: Write, now: Timestamp | None) -> None:
        begun = self._begun.pop(key, None)
        if not isinstance(write, Update):
            return
        driver = write.value.spec.driver
        self._metrics.processed.inc(driver)
        if begun is not None and now is not None:
            seconds = (now.instant - begun.instant).total_seconds()
            self._metrics.durations.observe(max(seconds, 0.0), driver)
