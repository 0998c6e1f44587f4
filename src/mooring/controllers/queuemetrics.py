"""What is counted of queues, under Kubernetes' names; loops of one source count as one queue."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.kit.metrics import Counts, Durations, Family, Level, exponential_buckets

_BUCKETS_S = exponential_buckets(10e-9, 10, 10)


class QueuesMetrics:
    """The counts of all queues of a program."""

    def __init__(self) -> None:
        labels = ("name",)
        self._depths: dict[str, dict[object, int]] = {}
        self.adds = Counts("workqueue_adds_total", "Keys that became ready.", labels)
        self.retries = Counts("workqueue_retries_total", "Keys that failed and come again.", labels)
        self.waited = Durations(
            "workqueue_queue_duration_seconds", "Seconds that keys were ready.", _BUCKETS_S, labels
        )
        self.worked = Durations(
            "workqueue_work_duration_seconds", "Seconds of work on a key.", _BUCKETS_S, labels
        )
        self.depth = Level("workqueue_depth", "Keys that are ready.", labels, self._look)

    def of(self, name: str) -> QueueCounts:
        """Return what one queue reports to."""
        return QueueCounts(self, name)

    def note_depth(self, queue: QueueCounts, depth: int) -> None:
        """Note how many keys of a queue are ready."""
        self._depths.setdefault(queue.name, {})[queue] = depth

    def families(self) -> Iterator[Family]:
        """Give all metrics."""
        yield from (self.adds, self.depth, self.retries, self.waited, self.worked)

    def _look(self) -> dict[tuple[str, ...], int]:
        return {(name,): sum(depths.values()) for name, depths in self._depths.items()}


class QueueCounts:
    """What one queue reports: a `mooring.kit.queue.QueueMetrics`."""

    def __init__(self, all_queues: QueuesMetrics, name: str) -> None:
        self._all, self.name = all_queues, name

    def added(self, depth: int) -> None:
        """Note that a key became ready."""
        self._all.adds.add(self.name)
        self._all.note_depth(self, depth)

    def taken(self, depth: int, waited_s: float) -> None:
        """Note that a worker has taken a key."""
        self._all.waited.note(waited_s, self.name)
        self._all.note_depth(self, depth)

    def finished(self, worked_s: float) -> None:
        """Note that a worker is done with a key."""
        self._all.worked.note(worked_s, self.name)

    def retried(self) -> None:
        """Note that a key failed and comes again."""
        self._all.retries.add(self.name)
