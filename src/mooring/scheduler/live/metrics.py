"""What the scheduler counts, under Kubernetes' names, as Prometheus reads it.

Names that only the seeds have are aliases of the shipped ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from mooring.api.resource.v1 import ResourceClaim
from mooring.scheduler.bindingconditions import has_conditions

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"

DYNAMIC_RESOURCES = "DynamicResources"
NODE_RESOURCES_FIT = "NodeResourcesFit"

Labels = tuple[tuple[str, str], ...]


class Counts:
    """A counter or gauge with labels."""

    def __init__(
        self, name: str, text: str, type_: str = "counter", *, aliases: tuple[str, ...] = ()
    ) -> None:
        self._names, self._text, self._type = (name, *aliases), text, type_
        self._values: Counter[Labels] = Counter()

    def add(self, **labels: str) -> None:
        """Count one more with these labels."""
        self._values[tuple(labels.items())] += 1

    def replace(self, label: str, values: Mapping[str, int]) -> None:
        """Set all values by one label."""
        self._values = Counter({((label, key),): value for key, value in values.items()})

    def value(self, **labels: str) -> float:
        """Return the value with these labels."""
        return self._values[tuple(labels.items())]

    def lines(self) -> Iterator[str]:
        """Give the lines of the text."""
        for name in self._names:
            yield f"# HELP {name} {self._text}"
            yield f"# TYPE {name} {self._type}"
            for labels, value in sorted(self._values.items()):
                yield f"{name}{shown(labels)} {value}"


class Histogram:
    """Values counted by how large they are."""

    def __init__(self, name: str, text: str, first: float, factor: float, number: int) -> None:
        self._name, self._text = name, text
        self._bounds = [first * factor**power for power in range(number)]
        self._counts: dict[Labels, list[int]] = {}
        self._sums: Counter[Labels] = Counter()

    def observe(self, value: float, **labels: str) -> None:
        """Count a value."""
        key = tuple(labels.items())
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[key] += value  # type: ignore[assignment]

    def count(self, **labels: str) -> int:
        """Return how many values were counted with these labels."""
        return sum(self._counts.get(tuple(labels.items()), ()))

    def lines(self) -> Iterator[str]:
        """Give the lines of the text."""
        yield f"# HELP {self._name} {self._text}"
        yield f"# TYPE {self._name} histogram"
        for labels, counts in sorted(self._counts.items()):
            total = 0
            for bound, number in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                total += number
                yield f"{self._name}_bucket{shown((*labels, ('le', bound)))} {total}"
            yield f"{self._name}_sum{shown(labels)} {self._sums[labels]}"
            yield f"{self._name}_count{shown(labels)} {total}"


class Metrics:
    """All that is counted."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.attempts = Counts(
            "scheduler_schedule_attempts_total", "Attempts to schedule pods, by the result."
        )
        self.attempt_s = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt takes, with binding.",
            0.001,
            2,
            15,
        )
        self.algorithm_s = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "How long it takes to decide.",
            0.001,
            2,
            15,
        )
        self.plugin_s = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "How long a plugin takes at an extension point.",
            0.00001,
            1.5,
            20,
        )
        self.sli_s = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "How long a pod takes from entering the queue to being bound.",
            0.01,
            2,
            20,
        )
        self.tries = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that a pod took to be scheduled.",
            1,
            2,
            5,
        )
        self.pending = Counts("scheduler_pending_pods", "Pending pods, by the queue.", "gauge")
        self.unschedulable = Counts(
            "scheduler_unschedulable_pods",
            "Pods without a node, by the plugin that refuses them.",
            "gauge",
        )
        self.victims = Histogram(
            "scheduler_preemption_victims", "Pods that must leave for one pod.", 1, 2, 7
        )
        self.preemptions = Counts(
            "scheduler_preemption_attempts_total", "Attempts to make room by preemption."
        )
        self.creates = Counts(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Claims created, by the result.",
            aliases=("scheduler_resourceclaim_creates_total",),
        )
        self.ready = Counts(
            "scheduler_dra_bindingconditions_allocations_total",
            "Allocations of devices with binding conditions, by the result.",
        )
        self.ready_s = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long binding conditions were waited for.",
            0.1,
            2,
            14,
        )

    def created(self, status: str) -> None:
        """Count a claim for extended resources that was created, or failed to be."""
        self.creates.add(
            status=status, admin_access="false", owner_api_group="", owner_api_kind="Pod"
        )

    def ran(self, point: str, status: str, seconds: float, *, with_devices: bool) -> None:
        """Count how long an extension point took.

        What plugins ask of nodes is asked together. The time counts for the one that needs most of
        it: the search for devices, or else whether there is room.
        """
        plugin = DYNAMIC_RESOURCES if with_devices else NODE_RESOURCES_FIT
        labels = {"plugin": plugin, "extension_point": point, "status": status}
        self.plugin_s.observe(seconds, **labels)

    def waited(self, claims: list[ResourceClaim], status: str, seconds: float) -> None:
        """Count what became of waiting for devices."""
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                labels = {"profile": self.profile, "driver": result.driver, "status": status}
                self.ready_s.observe(seconds, **labels)
                if has_conditions(claim) and result.binding_conditions:
                    self.ready.add(**labels)

    def text(self) -> str:
        """Return all that was counted."""
        found = (each for each in vars(self).values() if isinstance(each, Counts | Histogram))
        return "\n".join(line for each in found for line in each.lines()) + "\n"


def shown(labels: Labels) -> str:
    """Return labels as Prometheus reads them."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return f"{value:.10g}"
