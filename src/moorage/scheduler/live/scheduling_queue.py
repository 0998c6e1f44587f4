"""The scheduling queue: which pod is tried next, and which waits until an event can help it.

    activeQ ──pop──► tried ──► placed, and gone from here
      ▲                │
      │ backoff over   ├─ error ──► backoffQ
      │                │
    backoffQ ◄─────────┴─ no node ──► unschedulable, until a hinted event or five minutes later

An entry is a pod, or the pods of a group that are tried together. One whose expressions take long
is put off: namespaces take turns, and everything else gets as much time as all of these.

Pods of one kind get the same answer from the same cluster. So of those that are unschedulable, one
is activated for all: if it gets a node the next is activated, if not the others would not get one
either. An event costs by the kinds that it can help, and not by the pods.

    # probe: the entry that was activated for its kind, until it is tried
    # put off: its attempt goes on when it is its turn (see `evaluation_turns`)
    # ticket: identifies the entry of a heap that still counts
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from moorage.api.core.pod import Pod
from moorage.scheduler.live.backoff import Backoff
from moorage.scheduler.live.queue_entries import (
    ACTIVE,
    BACKOFF,
    GATED,
    OUT,
    PUT_OFF,
    UNSCHEDULABLE,
    KindBucket,
    PodKind,
    QueuedPodInfo,
    QueueKey,
    Row,
    row_waits,
)
from moorage.scheduler.live.queueing_hints import ClusterEvent, QueueingHints

OLD_ROWS_MAX = 16  # of a heap, beside as many as wait
LOOKS_MAX = 16  # entries of a kind that are checked for one that need not back off


class SchedulingQueue:
    """All pods that wait."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self.backoff = backoff or Backoff()
        self._entries: dict[QueueKey, QueuedPodInfo] = {}
        self._active_q: list[tuple[int, float, int, QueuedPodInfo]] = []
        self._backoff_q: list[tuple[float, int, QueuedPodInfo]] = []
        # The longest waiting first.
        self._unschedulable: OrderedDict[QueueKey, QueuedPodInfo] = OrderedDict()
        # Dicts for sets: who waited first is activated first, in every run the same.
        self._waiting: defaultdict[ClusterEvent, dict[QueueKey, None]] = defaultdict(dict)
        self._buckets: dict[PodKind, KindBucket] = {}
        self._kinds_waiting: defaultdict[ClusterEvent, dict[PodKind, None]] = defaultdict(dict)
        self._tickets = count(1)
        self._put_off: OrderedDict[str, deque[tuple[int, QueuedPodInfo]]] = OrderedDict()
        self.slices_from_s = 0.0  # until then it is the turn of everything else
        self._was_slice = False  # the entry popped last

    # --- pods -------------------------------------------------------------------------------------

    def find(self, key: QueueKey) -> QueuedPodInfo | None:
        """Return an entry that hints."""
        return self._entries.get(key)

    def put(self, key: QueueKey, pod_key: str, pod: Pod, *, priority: int, now_s: float) -> None:
        """Add a pod, or its newer version; a new one is tried soon."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = QueuedPodInfo(key, now_s)
        is_new = pod_key not in entry.pods
        entry.pods[pod_key] = pod
        entry.priority = priority
        if is_new:
            entry.is_ready = False
            if entry.queue != UNSCHEDULABLE or not entry.is_parked:
                self._activate(entry, now_s)

    def discard(
        self, key: QueueKey, pod_key: str, now_s: float, *, was_ready: bool = False
    ) -> None:
        """Remove a pod; the others of its group are tried without it.

        They are tried even if they are too few, if they were enough until now.
        """
        entry = self._entries.get(key)
        if entry is None or entry.pods.pop(pod_key, None) is None:
            return
        if not entry.pods:
            self._leave(entry)
            del self._entries[key]
            self._pass_on(entry, now_s)
        elif entry.queue == GATED or (entry.queue == UNSCHEDULABLE and not entry.is_parked):
            self._activate(entry, now_s)
        entry.is_ready = was_ready

    # --- trying -----------------------------------------------------------------------------------

    def pop(self, now_s: float) -> QueuedPodInfo | None:
        """Return the entry to try next, and remove it from the queue."""
        self.tick(now_s)
        entry = None if self._was_slice else self._first_put_off(now_s)
        entry = entry or self._first_active() or self._first_put_off(now_s) or self._first_early()
        if entry is None:
            return None
        entry.is_slice = self._was_slice = entry.queue == PUT_OFF
        self._leave(entry)
        del self._entries[entry.key]
        entry.tries += 1
        if entry.probes is not None and (bucket := self._buckets.get(entry.probes)) is not None:
            bucket.probe = None
            self._tidy(entry.probes, bucket)
        return entry

    def placed(self, entry: QueuedPodInfo, kind: PodKind | None, now_s: float) -> None:
        """Record that a pod got a node: the next of its kind may get one, too."""
        if kind is not None:
            self._activate_kind(kind, now_s)
        if entry.probes != kind:
            self._pass_on(entry, now_s)
        entry.probes = None

    def add_unschedulable(
        self, entry: QueuedPodInfo, hints: QueueingHints, kind: PodKind | None, now_s: float
    ) -> None:
        """Keep an entry until an event can help it."""
        entry = self._back(entry)
        if entry.queue != OUT:
            return  # it got another pod meanwhile and is tried with it
        if entry.probes is not None and entry.probes != kind:
            self._pass_on(entry, now_s)
        entry.probes = None
        entry.has_failed = hints.is_timed and not hints.is_gated
        entry.is_ready = entry.has_failed and not hints.is_parked
        entry.is_parked, entry.muted = hints.is_parked, frozenset()
        entry.unschedulable_since_s = now_s
        if hints.is_gated:
            entry.tries -= 1
            entry.queue = GATED
        else:
            entry.queue = UNSCHEDULABLE
            wait_s = 0.0 if hints.is_eager else self.backoff.after(entry.tries)
            entry.backoff_until_s = now_s + wait_s
            if entry.has_failed:
                pods = len(entry.pods)
                entry.backoff_until_s = self.backoff.group_until_s(now_s, entry.tries, pods)
        self._unschedulable[entry.key] = entry
        self._listen(entry, hints, kind if hints.shared else None)

    def try_again(self, key: QueueKey, now_s: float) -> None:
        """Do not let an entry wait longer than it backs off."""
        entry = self._entries.get(key)
        if entry is not None and entry.queue == UNSCHEDULABLE:
            self._activate(entry, now_s)

    def put_off(self, entry: QueuedPodInfo, used_s: float) -> None:
        """Go on with an entry when it is its turn; it has used some time already."""
        entry = self._back(entry)
        if entry.queue != OUT:
            return
        entry.used_s = used_s
        entry.tries -= 1  # it is the same try
        entry.queue, entry.ticket = PUT_OFF, next(self._tickets)
        if entry.probes is not None and (bucket := self._buckets.get(entry.probes)) is not None:
            bucket.probe = entry
        is_first = entry.lane not in self._put_off
        self._put_off.setdefault(entry.lane, deque()).append((entry.ticket, entry))
        if is_first:  # One slice may be all that it needs, so it need not wait for many others.
            self._put_off.move_to_end(entry.lane, last=False)

    def back_off(self, entry: QueuedPodInfo, now_s: float) -> None:
        """Try an entry again after a while, whatever happens."""
        entry = self._back(entry)
        self._pass_on(entry, now_s)
        self._leave(entry)
        entry.has_failed, entry.is_ready, entry.muted = True, False, frozenset()
        entry.backoff_until_s = now_s + self.backoff.after(entry.tries)
        self._push_backoff(entry)

    # --- events and time --------------------------------------------------------------------------

    def fire(self, events: Iterable[ClusterEvent], now_s: float) -> None:
        """Activate the entries that one of the events can help."""
        for event in events if self._waiting or self._kinds_waiting else ():
            for key in tuple(self._waiting.get(event, ())):
                self._activate(self._entries[key], now_s)
            for kind in tuple(self._kinds_waiting.get(event, ())):
                self._activate_kind(kind, now_s)

    def tick(self, now_s: float) -> None:
        """Move entries whose time is up."""
        while self._backoff_q and self._backoff_q[0][0] <= now_s:
            _, ticket, entry = heappop(self._backoff_q)
            if entry.ticket == ticket and entry.queue == BACKOFF:
                self._activate(entry, now_s)
        while self._unschedulable:
            entry = next(iter(self._unschedulable.values()))
            if entry.unschedulable_since_s + self.backoff.parked_most_s > now_s:
                break
            if entry.queue == GATED:  # nothing but its own events can help it
                entry.unschedulable_since_s = now_s
                self._unschedulable.move_to_end(entry.key)
            else:
                self._activate(entry, now_s)

    def next_s(self) -> float | None:
        """Return when the next entry's time is up."""
        times = [row[0] for row in self._backoff_q[:1]]
        if self._put_off:
            times.append(self.slices_from_s)
        if self._unschedulable:
            oldest = next(iter(self._unschedulable.values()))
            times.append(oldest.unschedulable_since_s + self.backoff.parked_most_s)
        return min(times, default=None)

    def counts(self) -> dict[str, int]:
        """Return the number of pods in each queue."""
        found = dict.fromkeys((ACTIVE, BACKOFF, UNSCHEDULABLE, GATED), 0)
        for entry in self._entries.values():
            if entry.queue:
                found[ACTIVE if entry.queue == PUT_OFF else entry.queue] += len(entry.pods)
        return found

    def entries(self) -> Iterator[QueuedPodInfo]:
        """Yield all entries that wait."""
        yield from self._entries.values()

    # --- within -----------------------------------------------------------------------------------

    def _back(self, entry: QueuedPodInfo) -> QueuedPodInfo:
        """Add an entry again, together with pods that came for it meanwhile."""
        other = self._entries.get(entry.key)
        if other is None:
            self._entries[entry.key] = entry
            return entry
        other.pods = {**entry.pods, **other.pods}
        other.since_s = min(entry.since_s, other.since_s)
        other.tries = max(entry.tries, other.tries)
        other.probes = other.probes or entry.probes
        return other

    def _activate(self, entry: QueuedPodInfo, now_s: float) -> None:
        if entry.queue == ACTIVE:
            return
        is_waiting = entry.queue == UNSCHEDULABLE or (entry.queue == BACKOFF and entry.has_failed)
        if entry.queue == UNSCHEDULABLE and entry.has_failed and not entry.is_parked:
            until_s, tries = entry.backoff_until_s, entry.tries
            entry.backoff_until_s, entry.tries = self.backoff.next_of_group(
                until_s, tries, len(entry.pods), now_s
            )
            if entry.tries > tries:
                entry.muted = frozenset(entry.pods)
        self._leave(entry)
        if is_waiting and entry.backoff_until_s > now_s:
            self._push_backoff(entry)
            return
        entry.queue, entry.ticket = ACTIVE, next(self._tickets)
        heappush(self._active_q, (-entry.priority, entry.since_s, entry.ticket, entry))

    def _push_backoff(self, entry: QueuedPodInfo) -> None:
        entry.queue, entry.ticket = BACKOFF, next(self._tickets)
        heappush(self._backoff_q, (entry.backoff_until_s, entry.ticket, entry))

    def _first_active(self) -> QueuedPodInfo | None:
        while self._active_q:
            *_, ticket, entry = heappop(self._active_q)
            if entry.ticket == ticket and entry.queue == ACTIVE:
                return entry
        return None

    def _first_put_off(self, now_s: float) -> QueuedPodInfo | None:
        """Take the first entry of the lane whose turn it is; that lane comes last then."""
        while self._put_off and now_s >= self.slices_from_s:
            lane, rows = next(iter(self._put_off.items()))
            while rows:
                ticket, entry = rows.popleft()
                if entry.ticket == ticket and entry.queue == PUT_OFF:
                    self._put_off.move_to_end(lane)
                    return entry
            del self._put_off[lane]
        return None

    def _first_early(self) -> QueuedPodInfo | None:
        """Return one that backs off without need, as there is nothing else to do."""
        early: list[tuple[float, int, QueuedPodInfo]] = []
        found = None
        while self._backoff_q and found is None and len(early) < LOOKS_MAX:
            row = heappop(self._backoff_q)
            _, ticket, entry = row
            if entry.ticket != ticket or entry.queue != BACKOFF:
                continue
            if entry.has_failed:
                early.append(row)
            else:
                found = entry
        for row in early:
            heappush(self._backoff_q, row)
        return found

    def _leave(self, entry: QueuedPodInfo) -> None:
        """Remove an entry from its queue."""
        if entry.queue in (UNSCHEDULABLE, GATED):
            del self._unschedulable[entry.key]
            self._unlisten(entry)
        entry.queue = OUT

    def _listen(self, entry: QueuedPodInfo, hints: QueueingHints, kind: PodKind | None) -> None:
        entry.kind = kind
        entry.events = hints.own if kind is not None else hints.own | hints.shared
        for event in entry.events:
            self._waiting[event][entry.key] = None
        if kind is None:
            return
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = KindBucket()
        self._set_events(kind, bucket, hints.shared)
        entry.ticket = next(self._tickets)
        bucket.count += 1
        heappush(bucket.heap, (-entry.priority, entry.since_s, entry.ticket, entry))

    def _unlisten(self, entry: QueuedPodInfo) -> None:
        for event in entry.events:
            waiting = self._waiting[event]
            waiting.pop(entry.key, None)
            if not waiting:
                del self._waiting[event]
        kind, entry.events, entry.kind = entry.kind, frozenset(), None
        if kind is not None and (bucket := self._buckets.get(kind)) is not None:
            bucket.count -= 1
            self._tidy(kind, bucket)

    def _tidy(self, kind: PodKind, bucket: KindBucket) -> None:
        """Forget a kind of which none waits, and old rows if most are old."""
        if not bucket.count and bucket.probe is None:
            self._set_events(kind, bucket, frozenset())
            del self._buckets[kind]
        elif len(bucket.heap) > 2 * bucket.count + OLD_ROWS_MAX:
            bucket.heap = [row for row in bucket.heap if row_waits(row, kind)]
            heapify(bucket.heap)

    def _set_events(
        self, kind: PodKind, bucket: KindBucket, events: frozenset[ClusterEvent]
    ) -> None:
        """Set the events of a kind by its last answer: the others would get that answer now."""
        for event in bucket.events - events:
            waiting = self._kinds_waiting[event]
            waiting.pop(kind, None)
            if not waiting:
                del self._kinds_waiting[event]
        for event in events - bucket.events:
            self._kinds_waiting[event][kind] = None
        bucket.events = events

    def _activate_kind(self, kind: PodKind, now_s: float) -> None:
        """Activate one entry of a kind, unless one is active."""
        bucket = self._buckets.get(kind)
        if bucket is None or (bucket.probe is not None and bucket.probe.queue != OUT):
            return
        bucket.probe = entry = self._best(bucket, kind, now_s)
        if entry is not None:
            self._activate(entry, now_s)
            entry.probes = kind
        self._tidy(kind, bucket)

    def _best(self, bucket: KindBucket, kind: PodKind, now_s: float) -> QueuedPodInfo | None:
        """Take the first entry of a kind, or one of the first that need not back off."""
        seen: list[Row] = []
        found = None
        while bucket.heap and found is None and len(seen) < LOOKS_MAX:
            row = heappop(bucket.heap)
            if row_waits(row, kind):
                if row[3].backoff_until_s > now_s:
                    seen.append(row)
                else:
                    found = row[3]
        if found is None and seen:
            found = seen.pop(0)[3]
        for row in seen:
            heappush(bucket.heap, row)
        return found

    def _pass_on(self, entry: QueuedPodInfo, now_s: float) -> None:
        """Activate another in place of an entry that did not answer for its kind."""
        kind, entry.probes = entry.probes, None
        if kind is not None:
            bucket = self._buckets.get(kind)
            if bucket is not None and bucket.probe is entry:
                bucket.probe = None
            self._activate_kind(kind, now_s)
