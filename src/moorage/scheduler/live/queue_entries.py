"""The entries of the scheduling queue: a pod, or the pods of a group that are tried together."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct, field

from moorage.api.core.pod import Pod
from moorage.scheduler.live.queueing_hints import ClusterEvent

QueueKey = tuple[str, ...]  # ("pod", key), or the key of a root of groups
PodKind = Hashable

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"
PUT_OFF = "put off"  # counted as active
OUT = ""  # not in the queue


class QueuedPodInfo(Struct, eq=False):
    """A pod, or pods that are tried together."""

    key: QueueKey
    since_s: float
    pods: dict[str, Pod] = field(default_factory=dict)
    priority: int = 0
    tries: int = 0
    queue: str = OUT
    ticket: int = 0
    backoff_until_s: float = 0.0
    has_failed: bool = False  # by an error, or as a group: it must back off before it is tried
    is_ready: bool = False  # a group that is tried again as it is, even if it is too small by now
    is_parked: bool = False  # Kubernetes would not have tried it meanwhile
    muted: frozenset[str] = frozenset()  # pods of which Kubernetes repeats the last event first
    unschedulable_since_s: float = 0.0
    events: frozenset[ClusterEvent] = frozenset()
    kind: PodKind | None = None  # with which it waits
    probes: PodKind | None = None  # for which it was activated
    used_s: float = 0.0  # by the slices of an attempt that was put off
    is_slice: bool = False  # whether it was popped for a slice

    @property
    def lane(self) -> str:
        """The namespace, whose entries take turns with those of others."""
        return next((pod.metadata.namespace for pod in self.pods.values()), "")


Row = tuple[int, float, int, QueuedPodInfo]  # priority, lower first; since; ticket


class KindBucket(Struct, eq=False):
    """Unschedulable entries of one kind, the most important first."""

    events: frozenset[ClusterEvent] = frozenset()
    heap: list[Row] = field(default_factory=list)
    count: int = 0  # of the entries that wait; the heap has old rows, too
    probe: QueuedPodInfo | None = None


def row_waits(row: Row, kind: PodKind) -> bool:
    """Return whether the entry of a row still waits, and not in another row."""
    *_, ticket, entry = row
    return entry.ticket == ticket and entry.queue == UNSCHEDULABLE and entry.kind == kind
