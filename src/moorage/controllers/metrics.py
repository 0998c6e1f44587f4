"""The metrics of controllers and workqueues, under Kubernetes' names; those of KEPs are aliases."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from moorage.api.resource.v1 import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    POD_CLAIM_ANNOTATION,
    ResourceClaim,
)
from moorage.claims.pod_claims import controller_of
from moorage.client.indexer import Indexer
from moorage.client.writes import Create, Write
from moorage.kit.metrics import Counter, Family, Gauge, Histogram, Labels, exponential_buckets

_BUCKETS_S = exponential_buckets(10e-9, 10, 10)
_EVICTION_BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class WorkQueuesMetrics:
    """The counts of all queues of a program."""

    def __init__(self) -> None:
        labels = ("name",)
        self._depths: dict[str, dict[object, int]] = {}
        self.adds = Counter("workqueue_adds_total", "Keys that became ready.", labels)
        self.retries = Counter(
            "workqueue_retries_total", "Keys that failed and are retried.", labels
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds",
            "Seconds that keys waited for a worker.",
            _BUCKETS_S,
            labels,
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds", "Seconds of work on a key.", _BUCKETS_S, labels
        )
        self.depth = Gauge("workqueue_depth", "Keys that are ready.", labels, self._look)

    def of(self, name: str) -> WorkQueueMetrics:
        """Return the metrics of one queue."""
        return WorkQueueMetrics(self, name)

    def note_depth(self, queue: WorkQueueMetrics, depth: int) -> None:
        """Note how many keys of a queue are ready."""
        self._depths.setdefault(queue.name, {})[queue] = depth

    def families(self) -> Iterator[Family]:
        """Yield all metrics."""
        yield from (self.adds, self.depth, self.retries, self.waited, self.worked)

    def _look(self) -> dict[tuple[str, ...], int]:
        return {(name,): sum(depths.values()) for name, depths in self._depths.items()}


class WorkQueueMetrics:
    """The metrics of one queue: a `moorage.kit.workqueue.QueueMetrics`."""

    def __init__(self, all_queues: WorkQueuesMetrics, name: str) -> None:
        self._all, self.name = all_queues, name

    def added(self, depth: int) -> None:
        """Note that a key became ready."""
        self._all.adds.inc(self.name)
        self._all.note_depth(self, depth)

    def taken(self, depth: int, waited_s: float) -> None:
        """Note that a worker has taken a key."""
        self._all.waited.observe(waited_s, self.name)
        self._all.note_depth(self, depth)

    def finished(self, worked_s: float) -> None:
        """Note that a worker is done with a key."""
        self._all.worked.observe(worked_s, self.name)

    def retried(self) -> None:
        """Note that a key failed and is retried."""
        self._all.retries.inc(self.name)


class ClaimMetrics:
    """The counts that the loops of this package share."""

    def __init__(self) -> None:
        self.creates = Counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaim creation requests, by outcome.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            aliases=("resourceclaim_controller_creates_total",),
        )

    def created(self, write: Write, status: str) -> None:
        """Count a claim that was made, or could not be created; other writes do not count."""
        if isinstance(write, Create) and isinstance(write.value, ResourceClaim):
            claim = write.value
            self.creates.inc(status, admin_access(claim), *_owner(claim))

    def families(self, objects: Indexer) -> Iterator[Family]:
        """Yield all metrics; the number of claims is counted when it is read."""
        yield self.creates
        labels = ("allocated", "admin_access", "source")
        yield Gauge(
            "dynamic_resource_allocation_resource_claims",
            "Number of ResourceClaims by allocation, admin access and source: a template, "
            "extended resources, or empty for those that a user made.",
            labels,
            lambda: claim_counts(objects),
        )
        yield Gauge(
            "resourceclaim_controller_resource_claims",
            "The same, with the name and the sources of KEP-5004.",
            labels,
            lambda: {
                (allocated, admin, source.replace("_", "-")): number
                for (allocated, admin, source), number in claim_counts(objects).items()
            },
        )


def claim_counts(objects: Indexer) -> collections.Counter[Labels]:
    """Return how many claims there are: allocated or not, with admin access or not, by source."""
    return collections.Counter(
        (_word(claim.status.allocation is not None), admin_access(claim), _source(claim))
        for claim in objects.list(ResourceClaim)
    )


def admin_access(claim: ResourceClaim) -> str:
    """Return whether a request wants admin access, as a label."""
    requests = claim.spec.devices.requests or ()
    return _word(any(each.exactly and each.exactly.admin_access for each in requests))


def _source(claim: ResourceClaim) -> str:
    annotations = claim.metadata.annotations
    if annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if annotations.get(POD_CLAIM_ANNOTATION) else ""


def _owner(claim: ResourceClaim) -> tuple[str, str]:
    controller = controller_of(claim.metadata)
    if controller is None:
        return "", ""
    group, slash, _ = controller.api_version.partition("/")
    return (group if slash else ""), controller.kind


def _word(truth: bool) -> str:
    return "true" if truth else "false"


class TaintMetrics:
    """The eviction metrics, under Kubernetes' names."""

    def __init__(self) -> None:
        prefix = "device_taint_eviction_controller"
        self.deletions = Counter(
            f"{prefix}_pod_deletions_total",
            "Number of Pods deleted because of device taints since the controller started.",
        )
        self.durations = Histogram(
            f"{prefix}_pod_deletion_duration_seconds",
            "Seconds between the time when a device taint takes effect and the Pod's deletion.",
            _EVICTION_BUCKETS_S,
        )

    def families(self) -> Iterator[Family]:
        """Yield all metrics."""
        yield self.deletions
        yield self.durations


class RequestMetrics:
    """The request metrics, under Kubernetes' names."""

    def __init__(self) -> None:
        prefix, labels = "resourcepoolstatusrequest_controller", ("driver_name",)
        self.processed = Counter(
            f"{prefix}_requests_processed_total",
            "Number of ResourcePoolStatusRequests processed.",
            labels,
        )
        self.errors = Counter(
            f"{prefix}_request_processing_errors_total",
            "Number of ResourcePoolStatusRequests whose answer could not be written.",
            labels,
        )
        self.durations = Histogram(
            f"{prefix}_request_processing_duration_seconds",
            "Seconds from looking at a ResourcePoolStatusRequest to its answer.",
            exponential_buckets(0.001, 2, 15),
            labels,
        )

    def families(self) -> Iterator[Family]:
        """Yield all metrics."""
        yield self.processed
        yield self.errors
        yield self.durations


class DraMetrics:
    """What all of them count."""

    def __init__(self) -> None:
        self.claims = ClaimMetrics()
        self.taints = TaintMetrics()
        self.requests = RequestMetrics()

    def families(self, objects: Indexer) -> Iterator[Family]:
        """Yield all metrics; those of claims are counted when they are read."""
        yield from self.claims.families(objects)
        yield from self.taints.families()
        yield from self.requests.families()
