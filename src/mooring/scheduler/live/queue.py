"""Pods that wait for a node: which is tried next, and which is left alone until something helps it.

    active ──pop──► tried ──► placed, and gone from here
      ▲                │
      │ time is up     ├─ fault ──► backing off
      │                │
    backing off ◄──────┴─ no node ──► parked, until a topic is fired or five minutes have passed

An item is a pod, or the pods of a group that are tried together.

Pods of one kind get the same answer from the same cluster. So of those that are parked, one is
woken for all: if it gets a node the next is woken, if not the others would not get one either.
What happens costs by the kinds that it can help, and not by the pods.

    # probe: the item that was woken for its kind, until it is tried
    # ticket: tells whether an entry of a heap still counts
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct, field

from mooring.api.core.pod import Pod
from mooring.scheduler.live.hints import Topic, Waits

ItemKey = tuple[str, ...]  # ("pod", key) or ("group", namespace, name)
Kind = Hashable

ACTIVE = "active"
BACKOFF = "backoff"
PARKED = "unschedulable"
GATED = "gated"
OUT = ""  # not in the queue

LOOKS_MAX = 16  # items of a kind that are looked at for one that need not back off


class Backoff(Struct, frozen=True):
    """How long an item waits after a try: longer each time."""

    first_s: float = 1.0
    most_s: float = 10.0
    parked_most_s: float = 300.0

    def after(self, tries: int) -> float:
        """Return how long to wait after so many tries."""
        return float(min(self.first_s * 2 ** min(max(tries - 1, 0), 30), self.most_s))


class Item(Struct, eq=False):
    """Pods that are tried together."""

    key: ItemKey
    since_s: float
    pods: dict[str, Pod] = field(default_factory=dict)
    priority: int = 0
    tries: int = 0
    place: str = OUT
    ticket: int = 0
    backoff_until_s: float = 0.0
    has_failed: bool = False  # by a fault: its time must be up before it is tried
    parked_s: float = 0.0
    topics: frozenset[Topic] = frozenset()
    kind: Kind | None = None  # of which it is parked
    probes: Kind | None = None  # for which it was woken


class _Bucket(Struct, eq=False):
    """Parked items of one kind, the most important first."""

    topics: frozenset[Topic] = frozenset()
    heap: list[tuple[int, float, int, Item]] = field(default_factory=list)
    probe: Item | None = None


class Queue:
    """All items that wait."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self.backoff = backoff or Backoff()
        self._items: dict[ItemKey, Item] = {}
        self._active: list[tuple[int, float, int, Item]] = []
        self._backing_off: list[tuple[float, int, Item]] = []
        self._parked: OrderedDict[ItemKey, Item] = OrderedDict()  # the longest parked first
        # Dicts for sets: who waited first is woken first, in every run the same.
        self._waiting: defaultdict[Topic, dict[ItemKey, None]] = defaultdict(dict)
        self._buckets: dict[Kind, _Bucket] = {}
        self._kinds_waiting: defaultdict[Topic, dict[Kind, None]] = defaultdict(dict)
        self._tickets = count(1)

    # --- pods that come, change and go ------------------------------------------------------------

    def find(self, key: ItemKey) -> Item | None:
        """Return an item that waits."""
        return self._items.get(key)

    def put(self, key: ItemKey, pod_key: str, pod: Pod, *, priority: int, now_s: float) -> None:
        """Take in a pod, or its newer version; a new one is tried soon."""
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = Item(key, now_s)
        is_new = pod_key not in item.pods
        item.pods[pod_key] = pod
        item.priority = priority
        if is_new:
            self._activate(item, now_s)

    def discard(self, key: ItemKey, pod_key: str, now_s: float) -> None:
        """Forget a pod."""
        item = self._items.get(key)
        if item is None or item.pods.pop(pod_key, None) is None:
            return
        if not item.pods:
            self._leave(item)
            del self._items[key]
            self._pass_on(item, now_s)

    # --- trying -----------------------------------------------------------------------------------

    def pop(self, now_s: float) -> Item | None:
        """Return the item to try next, which is no longer in the queue."""
        self.tick(now_s)
        item = self._first_active() or self._first_early()
        if item is None:
            return None
        self._leave(item)
        del self._items[item.key]
        item.tries += 1
        if item.probes is not None and (bucket := self._buckets.get(item.probes)) is not None:
            bucket.probe = None
        return item

    def placed(self, item: Item, kind: Kind | None, now_s: float) -> None:
        """Note that a pod of an item got a node: the next of its kind may get one, too."""
        if kind is not None:
            self._wake_kind(kind, now_s)
        if item.probes != kind:
            self._pass_on(item, now_s)
        item.probes = None

    def park(self, item: Item, waits: Waits, kind: Kind | None, now_s: float) -> None:
        """Keep an item until something happens that can help it."""
        item = self._back(item)
        if item.place != OUT:
            return  # it got another pod meanwhile and is tried with it
        if item.probes is not None and item.probes != kind:
            self._pass_on(item, now_s)
        item.probes = None
        item.has_failed = False
        item.parked_s = now_s
        if waits.is_gated:
            item.tries -= 1
            item.place = GATED
        else:
            item.place = PARKED
            wait_s = 0.0 if waits.is_eager else self.backoff.after(item.tries)
            item.backoff_until_s = now_s + wait_s
        self._parked[item.key] = item
        self._listen(item, waits, kind if waits.shared else None)

    def back_off(self, item: Item, now_s: float) -> None:
        """Try an item again after a while, whatever happens."""
        item = self._back(item)
        self._pass_on(item, now_s)
        self._leave(item)
        item.has_failed = True
        item.backoff_until_s = now_s + self.backoff.after(item.tries)
        self._push_backing_off(item)

    # --- what happens -----------------------------------------------------------------------------

    def fire(self, topics: Iterable[Topic], now_s: float) -> None:
        """Wake the items that one of the topics can help."""
        for topic in topics:
            for key in tuple(self._waiting.get(topic, ())):
                self._activate(self._items[key], now_s)
            for kind in tuple(self._kinds_waiting.get(topic, ())):
                self._wake_kind(kind, now_s)

    def tick(self, now_s: float) -> None:
        """Move items whose time is up."""
        while self._backing_off and self._backing_off[0][0] <= now_s:
            _, ticket, item = heappop(self._backing_off)
            if item.ticket == ticket and item.place == BACKOFF:
                self._activate(item, now_s)
        while self._parked:
            item = next(iter(self._parked.values()))
            if item.parked_s + self.backoff.parked_most_s > now_s:
                break
            if item.place == GATED:  # nothing but what it waits for can help it
                item.parked_s = now_s
                self._parked.move_to_end(item.key)
            else:
                self._activate(item, now_s)

    def next_s(self) -> float | None:
        """Return when time brings something, if nothing else does."""
        times = [entry[0] for entry in self._backing_off[:1]]
        if self._parked:
            oldest = next(iter(self._parked.values()))
            times.append(oldest.parked_s + self.backoff.parked_most_s)
        return min(times, default=None)

    def counts(self) -> dict[str, int]:
        """Return how many pods are where."""
        found = dict.fromkeys((ACTIVE, BACKOFF, PARKED, GATED), 0)
        for item in self._items.values():
            if item.place:
                found[item.place] += len(item.pods)
        return found

    def items(self) -> Iterator[Item]:
        """Give all items that wait."""
        yield from self._items.values()

    # --- within -----------------------------------------------------------------------------------

    def _back(self, item: Item) -> Item:
        """Take an item in again, together with what came for it meanwhile."""
        other = self._items.get(item.key)
        if other is None:
            self._items[item.key] = item
            return item
        other.pods = {**item.pods, **other.pods}
        other.since_s = min(item.since_s, other.since_s)
        other.tries = max(item.tries, other.tries)
        other.probes = other.probes or item.probes
        return other

    def _activate(self, item: Item, now_s: float) -> None:
        if item.place == ACTIVE:
            return
        is_waiting = item.place == PARKED or (item.place == BACKOFF and item.has_failed)
        self._leave(item)
        if is_waiting and item.backoff_until_s > now_s:
            self._push_backing_off(item)
            return
        item.place, item.ticket = ACTIVE, next(self._tickets)
        heappush(self._active, (-item.priority, item.since_s, item.ticket, item))

    def _push_backing_off(self, item: Item) -> None:
        item.place, item.ticket = BACKOFF, next(self._tickets)
        heappush(self._backing_off, (item.backoff_until_s, item.ticket, item))

    def _first_active(self) -> Item | None:
        while self._active:
            *_, ticket, item = heappop(self._active)
            if item.ticket == ticket and item.place == ACTIVE:
                return item
        return None

    def _first_early(self) -> Item | None:
        """Return one that backs off without need, as there is nothing else to do."""
        early: list[tuple[float, int, Item]] = []
        found = None
        while self._backing_off and found is None and len(early) < LOOKS_MAX:
            entry = heappop(self._backing_off)
            item = entry[2]
            if item.ticket != entry[1] or item.place != BACKOFF:
                continue
            if item.has_failed:
                early.append(entry)
            else:
                found = item
        for entry in early:
            heappush(self._backing_off, entry)
        return found

    def _leave(self, item: Item) -> None:
        """Take an item from where it is."""
        if item.place in (PARKED, GATED):
            del self._parked[item.key]
            self._unlisten(item)
        item.place = OUT

    def _listen(self, item: Item, waits: Waits, kind: Kind | None) -> None:
        item.kind = kind
        item.topics = waits.own if kind is not None else waits.own | waits.shared
        for topic in item.topics:
            self._waiting[topic][item.key] = None
        if kind is None:
            return
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = _Bucket()
        self._set_topics(kind, bucket, waits.shared)
        item.ticket = next(self._tickets)
        heappush(bucket.heap, (-item.priority, item.since_s, item.ticket, item))

    def _unlisten(self, item: Item) -> None:
        for topic in item.topics:
            waiting = self._waiting[topic]
            waiting.pop(item.key, None)
            if not waiting:
                del self._waiting[topic]
        item.topics, item.kind = frozenset(), None

    def _set_topics(self, kind: Kind, bucket: _Bucket, topics: frozenset[Topic]) -> None:
        """Let a kind wait for what its last answer says: the others would get that answer now."""
        for topic in bucket.topics - topics:
            waiting = self._kinds_waiting[topic]
            waiting.pop(kind, None)
            if not waiting:
                del self._kinds_waiting[topic]
        for topic in topics - bucket.topics:
            self._kinds_waiting[topic][kind] = None
        bucket.topics = topics

    def _wake_kind(self, kind: Kind, now_s: float) -> None:
        """Wake one item of a kind, unless one is awake."""
        bucket = self._buckets.get(kind)
        if bucket is None or (bucket.probe is not None and bucket.probe.place != OUT):
            return
        item = self._best(bucket, kind, now_s)
        if item is None:
            self._set_topics(kind, bucket, frozenset())
            del self._buckets[kind]
            return
        self._activate(item, now_s)
        item.probes = kind
        bucket.probe = item

    def _best(self, bucket: _Bucket, kind: Kind, now_s: float) -> Item | None:
        """Take the first item of a kind, or one of the first that need not back off."""
        seen: list[tuple[int, float, int, Item]] = []
        found = None
        while bucket.heap and found is None and len(seen) < LOOKS_MAX:
            entry = heappop(bucket.heap)
            item = entry[3]
            if item.ticket != entry[2] or item.place != PARKED or item.kind != kind:
                continue
            if item.backoff_until_s > now_s:
                seen.append(entry)
            else:
                found = item
        if found is None and seen:
            found = seen.pop(0)[3]
        for entry in seen:
            heappush(bucket.heap, entry)
        return found

    def _pass_on(self, item: Item, now_s: float) -> None:
        """Wake another in place of an item that did not tell about its kind."""
        kind, item.probes = item.probes, None
        if kind is not None:
            bucket = self._buckets.get(kind)
            if bucket is not None and bucket.probe is item:
                bucket.probe = None
            self._wake_kind(kind, now_s)
