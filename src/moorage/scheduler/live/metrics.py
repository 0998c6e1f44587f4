"""The metrics of the scheduler, under Kubernetes' names.

Gauges, such as pending pods, are computed when they are read. Names that only the KEPs have are
aliases of the shipped ones. The requests and limits of pods are apart from the other metrics
(`/metrics/resources`), since there are as many as there are pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from moorage.api.core.pod import DEFAULT_SCHEDULER, Pod, add_resources
from moorage.api.core.resources import CPU, MEMORY, ResourceList
from moorage.api.meta import object_text
from moorage.api.resource.v1 import ResourceClaim
from moorage.cel.lang.metering import ExpressionWork
from moorage.claims.pod_resources import container_limits, is_huge_page, pod_requests
from moorage.kit.bulkhead import FAULTS
from moorage.kit.metrics import Counter, Family, Gauge, Histogram, Labels, exponential_buckets
from moorage.scheduler.binding_conditions import has_conditions
from moorage.scheduler.live.assume_cache import AssumeCache

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"
WAITING_ON_PREEMPTION: Final = "waiting_on_preemption"  # of groups

Look = Callable[[], Mapping[Labels, int]]

REQUEST = "kube_pod_resource_request"
LIMIT = "kube_pod_resource_limit"
EXPRESSION_SECONDS = "moorage_cel_expression_seconds"
EXPRESSION_EVALUATIONS = "moorage_cel_expression_evaluations"
SLOWEST_SHOWN = 10
EXPRESSION_SHOWN_MAX = 200  # characters
ENDED = ("Succeeded", "Failed")
_UNITS = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}
_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

_ATTEMPT_S: Final = exponential_buckets(0.001, 2, 15)


def profile_of(pod: Pod) -> str:
    """Return the profile that schedules a pod; a pod that no server has seen may name none."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER


def _shown(expression: str) -> Labels:
    """Return an expression as a label: its beginning, if it is long."""
    if len(expression) <= EXPRESSION_SHOWN_MAX:
        return (expression,)
    return (f"{expression[: EXPRESSION_SHOWN_MAX - 1]}…",)


class GaugeSources(Struct, frozen=True):
    """Where gauges are computed."""

    pending: Look = dict  # by queue
    unschedulable: Look = dict  # by plugin and profile
    cached: Look = dict  # by type
    slowest: Callable[[], Sequence[tuple[str, ExpressionWork]]] = tuple  # CEL expressions


class Metrics:
    """All metrics of the scheduler."""

    def __init__(self, sources: GaugeSources = GaugeSources()) -> None:  # noqa: B008
        self.attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule pods, by result: scheduled, unschedulable, or error.",
            ("profile", "result"),
        )
        self.attempt_s = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds that an attempt to schedule a pod takes, with binding.",
            _ATTEMPT_S,
            ("profile", "result"),
        )
        self.algorithm_s = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Seconds that it takes to decide about a pod.",
            _ATTEMPT_S,
        )
        self.plugin_s = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Seconds that a plugin takes at an extension point, in every tenth cycle.",
            exponential_buckets(0.00001, 1.5, 20),
            ("plugin", "extension_point", "status"),
        )
        self.sli_s = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Seconds from when a pod enters the queue until it is bound, by number of attempts.",
            exponential_buckets(0.01, 2, 20),
            ("attempts",),
        )
        self.tries = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that it took to schedule a pod.",
            exponential_buckets(1, 2, 5),
        )
        self._make_gauges(sources)
        self._make_group_and_claim_metrics()

    def _make_gauges(self, sources: GaugeSources) -> None:
        self.pending = Gauge(
            "scheduler_pending_pods",
            "Pending pods by queue: active, backoff, unschedulable, or gated.",
            ("queue",),
            sources.pending,
        )
        self.unschedulable = Gauge(
            "scheduler_unschedulable_pods",
            "Pods without a node by each plugin that rejects them or holds them back.",
            ("plugin", "profile"),
            sources.unschedulable,
        )
        self.cached = Gauge(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods that the scheduler knows.",
            ("type",),
            sources.cached,
        )
        self.expression_s = Gauge(
            EXPRESSION_SECONDS,
            "Seconds spent evaluating the slowest CEL expressions.",
            ("expression",),
            lambda: {_shown(text): work.seconds for text, work in sources.slowest()},
        )
        self.expression_evaluations = Gauge(
            EXPRESSION_EVALUATIONS,
            "Evaluations of the slowest CEL expressions, one for each device.",
            ("expression",),
            lambda: {_shown(text): work.evaluations for text, work in sources.slowest()},
        )

    def _make_group_and_claim_metrics(self) -> None:
        self.victims = Histogram(
            "scheduler_preemption_victims",
            "Pods that one pod preempts at once.",
            exponential_buckets(1, 2, 7),
        )
        self.preemptions = Counter(
            "scheduler_preemption_attempts_total", "Attempts to preempt pods."
        )
        self.group_attempts = Counter(
            "scheduler_podgroup_schedule_attempts_total",
            "Attempts to schedule pod groups, by result: scheduled, unschedulable, "
            "waiting_on_preemption, or error.",
            ("profile", "result"),
        )
        self.group_attempt_s = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Seconds that an attempt to schedule a pod group takes.",
            _ATTEMPT_S,
            ("profile", "result"),
        )
        self.group_algorithm_s = Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Seconds that it takes to decide about a pod group.",
            _ATTEMPT_S,
        )
        self.creates = Counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "ResourceClaim creation requests, by outcome.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            aliases=("scheduler_resourceclaim_creates_total",),
        )
        self.ready = Counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "Allocations of devices with binding conditions, by how the wait for them ended.",
            ("profile", "driver", "status"),
        )
        self.ready_s = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Seconds spent waiting for binding conditions.",
            exponential_buckets(0.1, 2, 14),
            ("profile", "driver", "status"),
        )

    def created(self, status: str) -> None:
        """Count a claim for extended resources that was created, or failed to be."""
        self.creates.inc(status, "false", "", "Pod")

    def attempted(self, profile: str, result: str, seconds: float) -> None:
        """Count an attempt to schedule a pod."""
        self.attempts.inc(profile, result)
        self.attempt_s.observe(seconds, profile, result)

    def group_attempted(self, profile: str, result: str, seconds: float) -> None:
        """Count an attempt to schedule a pod group."""
        self.group_attempts.inc(profile, result)
        self.group_attempt_s.observe(seconds, profile, result)
        self.group_algorithm_s.observe(seconds)

    def waited(
        self, claims: list[ResourceClaim], profile: str, status: str, seconds: float
    ) -> None:
        """Count the result of waiting for devices, for a pod of a profile."""
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                self.ready_s.observe(seconds, profile, result.driver, status)
                if has_conditions(claim) and result.binding_conditions:
                    self.ready.inc(profile, result.driver, status)

    def families(self) -> Iterator[Family]:
        """Yield all metrics."""
        yield from (each for each in vars(self).values() if isinstance(each, Family))


def cache_sizes(cache: AssumeCache) -> dict[Labels, int]:
    """Return how many nodes, pods and assumed pods the scheduler knows."""
    nodes = cache.cluster.snapshot.nodes
    return {
        ("nodes",): len(nodes),
        ("pods",): sum(len(info.pods) for info in nodes.values()),
        ("assumed_pods",): len(cache.assumed) + len(cache.in_flight),
    }


# --- requests and limits of pods ------------------------------------------------------------------


def resource_families(pods: Iterable[Pod]) -> Iterator[Family]:
    """Yield the requests and limits of all pods that have not ended."""
    counted = [pod for pod in pods if not (pod.spec.node_name and pod.status.phase in ENDED)]
    text = "Resources that a pod asks for, all its containers together."
    yield Gauge(REQUEST, text, _LABELS, partial(_amounts, counted, pod_requests))
    text = "Resources that a pod may take, all its containers together."
    yield Gauge(LIMIT, text, _LABELS, partial(_amounts, counted, pod_limits))


def pod_limits(pod: Pod) -> ResourceList:
    """Return the limits of a pod: of its containers or the whole pod, with its overhead.

    A resource without a limit has none with the overhead, either.
    """
    total = container_limits(pod)
    if pod.spec.resources is not None:
        total |= pod.spec.resources.limits
    add_resources(
        total, {name: amount for name, amount in pod.spec.overhead.items() if name in total}
    )
    return total


def _amounts(pods: list[Pod], look: Callable[[Pod], ResourceList]) -> dict[Labels, float]:
    found: dict[Labels, float] = {}
    for pod in pods:
        with FAULTS.guard("metrics of pods", partial(object_text, pod)):
            for resource, amount in look(pod).items():
                if value := amount.approximate_float:
                    found[_labels(pod, resource)] = value
    return found


def _labels(pod: Pod, resource: str) -> Labels:
    spec = pod.spec
    return (
        pod.metadata.namespace,
        pod.metadata.name,
        spec.node_name,
        spec.scheduler_name,
        "" if spec.priority is None else str(spec.priority),
        resource,
        _unit(resource),
    )


def _unit(resource: str) -> str:
    if is_huge_page(resource):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")
