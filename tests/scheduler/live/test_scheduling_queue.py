"""The queue: who is tried next, who backs off, who is woken."""

from __future__ import annotations

from gc import collect, get_objects
from weakref import ref

from moorage.scheduler.live.queue_entries import QueuedPodInfo
from moorage.scheduler.live.queueing_hints import (
    DEVICES_CHANGED,
    NODE_CHANGED,
    QueueingHints,
    of_pod,
)
from moorage.scheduler.live.scheduling_queue import SchedulingQueue
from tests.scheduler.makers import pod

OWN = frozenset((of_pod("x"),))
DEVICE_WAITS = QueueingHints(OWN, frozenset((DEVICES_CHANGED,)))


def put(queue: SchedulingQueue, name: str, *, priority: int = 0, now_s: float = 0.0) -> None:
    queue.put(("pod", name), name, pod(name), priority=priority, now_s=now_s)


def popped(queue: SchedulingQueue, now_s: float) -> QueuedPodInfo:
    item = queue.pop(now_s)
    assert item is not None
    return item


def name_of(item: QueuedPodInfo | None) -> str:
    return "" if item is None else item.key[1]


def test_the_highest_priority_is_tried_first_and_then_the_oldest() -> None:
    queue = SchedulingQueue()
    put(queue, "young", now_s=2)
    put(queue, "old", now_s=1)
    put(queue, "high", priority=5, now_s=3)
    assert [name_of(queue.pop(3)) for _ in range(4)] == ["high", "old", "young", ""]


def test_a_fault_is_tried_again_after_longer_and_longer() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    now_s, waits = 0.0, []
    for _ in range(6):
        queue.back_off(popped(queue, now_s), now_s)
        next_s = queue.next_s()
        assert next_s is not None
        assert queue.pop(next_s - 0.01) is None
        waits.append(next_s - now_s)
        now_s = next_s
    assert waits == [1, 2, 4, 8, 10, 10]


def test_what_is_woken_is_tried_early_if_there_is_nothing_else_to_do() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, None, 0)
    queue.fire([NODE_CHANGED], 0.1)
    assert queue.pop(0.1) is None
    queue.fire([DEVICES_CHANGED], 0.1)
    assert queue.counts()["backoff"] == 1
    assert name_of(queue.pop(0.1)) == "p"


def test_of_a_kind_one_is_woken_and_the_next_when_it_got_a_node() -> None:
    queue = SchedulingQueue()
    for number in range(3):
        put(queue, f"p-{number}", now_s=number)
        queue.add_unschedulable(popped(queue, number), DEVICE_WAITS, "kind", number)
    queue.fire([DEVICES_CHANGED], 20)
    first = popped(queue, 20)
    assert name_of(first) == "p-0"
    assert queue.pop(20) is None
    queue.placed(first, "kind", 20)
    second = popped(queue, 20)
    assert name_of(second) == "p-1"
    queue.add_unschedulable(second, DEVICE_WAITS, "kind", 20)
    assert queue.pop(20) is None, "the third would not get one either"


def test_one_that_goes_before_it_is_tried_leaves_its_turn_to_the_next() -> None:
    queue = SchedulingQueue()
    for number in range(2):
        put(queue, f"p-{number}", now_s=number)
        queue.add_unschedulable(popped(queue, number), DEVICE_WAITS, "kind", number)
    queue.fire([DEVICES_CHANGED], 20)
    queue.discard(("pod", "p-0"), "p-0", 20)
    assert name_of(queue.pop(20)) == "p-1"


def test_the_kind_waits_for_what_its_last_answer_says() -> None:
    queue = SchedulingQueue()
    for number, topic in enumerate((NODE_CHANGED, DEVICES_CHANGED)):
        put(queue, f"p-{number}", now_s=number)
        waits = QueueingHints(OWN, frozenset((topic,)))
        queue.add_unschedulable(popped(queue, number), waits, "kind", number)
    queue.fire([NODE_CHANGED], 20)
    assert queue.pop(20) is None
    queue.fire([DEVICES_CHANGED], 20)
    assert name_of(queue.pop(20)) == "p-0"


def test_what_waits_for_five_minutes_is_tried_again() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, "kind", 0)
    assert queue.pop(299) is None
    assert queue.next_s() == 300
    assert name_of(queue.pop(300)) == "p"


def test_what_is_gated_is_woken_by_its_own_topics_only_and_at_once() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.add_unschedulable(popped(queue, 0), QueueingHints(OWN, is_gated=True), None, 0)
    assert queue.counts()["gated"] == 1
    queue.fire([DEVICES_CHANGED, NODE_CHANGED], 0)
    assert queue.pop(1000) is None
    queue.fire(OWN, 1000)
    assert popped(queue, 1000).tries == 1, "being gated was no try"


def test_what_happens_costs_by_kinds_and_not_by_pods() -> None:
    queue = SchedulingQueue()
    for number in range(2000):
        put(queue, f"p-{number}")
        queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, "kind", 0)
    for _ in range(2000):
        queue.fire([DEVICES_CHANGED], 20)
    counts = queue.counts()
    assert (counts["active"], counts["unschedulable"]) == (1, 1999)


class Kind:
    """A kind of pods that tells whether the queue still knows it."""


def test_a_kind_is_forgotten_with_the_last_pod_that_waits() -> None:
    queue = SchedulingQueue()
    kind = Kind()
    known = ref(kind)
    for name in ("first", "second"):
        put(queue, name)
        queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, kind, 0)
    del kind
    queue.discard(("pod", "first"), "first", 1)
    assert known() is not None
    queue.discard(("pod", "second"), "second", 1)
    assert known() is None


def test_a_kind_is_forgotten_when_its_last_pod_is_tried_and_gets_a_node() -> None:
    queue = SchedulingQueue()
    kind: Kind | None = Kind()
    known = ref(kind)
    put(queue, "p")
    queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, kind, 0)
    queue.fire([DEVICES_CHANGED], 20)
    queue.placed(popped(queue, 20), kind, 20)
    kind = None
    assert known() is None


def test_pods_that_are_gone_leave_nothing_beside_one_that_waits() -> None:
    queue = SchedulingQueue()
    put(queue, "stays")
    queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, "kind", 0)
    before = entries_in_memory()
    for number in range(100):
        put(queue, f"p-{number}")
        queue.add_unschedulable(popped(queue, 0), DEVICE_WAITS, "kind", 0)
        queue.discard(("pod", f"p-{number}"), f"p-{number}", 0)
    assert entries_in_memory() - before < 50


def entries_in_memory() -> int:
    collect()
    return sum(isinstance(each, QueuedPodInfo) for each in get_objects())
