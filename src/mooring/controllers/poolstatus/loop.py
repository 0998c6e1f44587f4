"""The controller of ResourcePoolStatusRequests: each is answered once, and deleted when it is old.

A request about a pool that is still being published waits for it: it is tried again some times,
and whenever a slice of its driver changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from mooring.api.resource.v1alpha3 import ResourcePoolStatusRequest
from mooring.api.timestamp import Timestamp
from mooring.cel.device import DeviceCompiler
from mooring.cel.device import Features as CelFeatures
from mooring.claims.evictions import Means
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Delete, LookAgain, Target, Update, Write
from mooring.controllers.controller import Answers, Change, Controller, Failed, Refused, Step
from mooring.controllers.devicetaints.marked import meaning
from mooring.controllers.poolstatus.answer import is_incomplete, pool_statuses, request_status
from mooring.kit.metrics import Counts, Durations, Family, exponential_buckets

ANSWERED_S = 3600.0
PENDING_S = 24 * 3600.0
ATTEMPTS_MAX = 6  # the first, and five more


def plan_request(
    objects: Objects,
    key: Key,
    now: Timestamp,
    *,
    rules: Iterable[DeviceTaintRule],
    means: Means,
) -> list[Step]:
    """Return the answer to a request, or the end of an old one."""
    request = objects.find(ResourcePoolStatusRequest, *key)
    if request is None or request.metadata.deletion_timestamp is not None:
        return []
    left_s = _left_s(request, now)
    if left_s < 0:
        return [Delete(Target.of(request))]
    again = LookAgain(key, left_s + 1)
    if request.status is not None:
        return [again]
    pools = pool_statuses(objects, request.spec, rules=rules, means=means)
    status = request_status(pools, request.spec.limit, now)
    if is_incomplete(status):
        return [again, Failed("incomplete pools detected", attempts_max=ATTEMPTS_MAX)]
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


class RequestMetrics:
    """What is counted of requests, under Kubernetes' names."""

    def __init__(self) -> None:
        prefix, labels = "resourcepoolstatusrequest_controller", ("driver_name",)
        self.processed = Counts(
            f"{prefix}_requests_processed_total",
            "Number of ResourcePoolStatusRequests processed.",
            labels,
        )
        self.errors = Counts(
            f"{prefix}_request_processing_errors_total",
            "Number of ResourcePoolStatusRequests whose answer could not be written.",
            labels,
        )
        self.durations = Durations(
            f"{prefix}_request_processing_duration_seconds",
            "Seconds from looking at a ResourcePoolStatusRequest to its answer.",
            exponential_buckets(0.001, 2, 15),
            labels,
        )

    def families(self) -> Iterator[Family]:
        """Give all metrics."""
        yield self.processed
        yield self.errors
        yield self.durations


class PoolStatusRequests(Controller):
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

    def __init__(
        self,
        gates: Gates,
        metrics: RequestMetrics | None = None,
        compiler: DeviceCompiler | None = None,
    ) -> None:
        self._is_on = gates.enabled(Gate.DRA_RESOURCE_POOL_STATUS)
        self._has_rules = gates.enabled(Gate.DRA_DEVICE_TAINT_RULES)
        self._metrics = metrics or RequestMetrics()
        self._compiler = compiler or DeviceCompiler(CelFeatures(list_attributes=True))
        self._begun: dict[Key, Timestamp] = {}

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give requests that came, and those that wait for the slices of a driver."""
        match change.new:
            case ResourcePoolStatusRequest() as request if self._is_on:
                yield key_of(request)
            case ResourceSlice() as slice_ if self._is_on:
                for request in objects.all(ResourcePoolStatusRequest):
                    if request.status is None and request.spec.driver == slice_.spec.driver:
                        yield key_of(request)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Give the answer to a request."""
        self._begun[key] = now
        rules = list(objects.all(DeviceTaintRule)) if self._has_rules else []
        means = meaning(objects, self._compiler)
        steps = plan_request(objects, key, now, rules=rules, means=means)
        if not any(isinstance(step, Update) for step in steps):
            del self._begun[key]
        return steps

    def wrote(self, objects: Objects, key: Key, write: Write, now: Timestamp) -> Iterable[Step]:  # noqa: ARG002
        """Count an answer."""
        self._count(key, write, now)
        return ()

    def refused(self, objects: Objects, key: Key, write: Write, refused: Refused) -> Iterable[Step]:  # noqa: ARG002
        """Count an answer that was not taken."""
        if isinstance(write, Update):
            self._metrics.errors.add(write.value.spec.driver)
        self._count(key, write, None)
        return ()

    def _count(self, key: Key, write: Write, now: Timestamp | None) -> None:
        begun = self._begun.pop(key, None)
        if not isinstance(write, Update):
            return
        driver = write.value.spec.driver
        self._metrics.processed.add(driver)
        if begun is not None and now is not None:
            seconds = (now.instant - begun.instant).total_seconds()
            self._metrics.durations.note(max(seconds, 0.0), driver)
