"""One line about a pod without a node, and how little it may take."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.core.node import NodeStatus
from mooring.api.meta import ObjectMeta
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from mooring.insight.explain.summary import PendingSummary
from mooring.insight.plan.planner import Plan
from mooring.scheduler.scheduling_cycle import Pending, schedule
from tests.insight.explain.test_report import planned


class Clock:
    """A clock that shows later each time."""

    def __init__(self, step_s: float) -> None:
        self.s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.s += self.step_s
        return self.s


def said(briefly: PendingSummary, plan: Plan, pending: Pending) -> str:
    return briefly(plan.cluster, pending.pod, pending)


def test_it_names_the_reason_and_the_nearest_fix() -> None:
    plan = planned(2)
    with_room = NodeStatus(allocatable={"pods": Quantity.from_int(110)})
    for node in plan.before.nodes:
        plan.cluster.put_node(replace(node, status=with_room))
    (waiting,) = plan.pending
    pending = schedule(plan.cluster, waiting.pod)
    assert isinstance(pending, Pending)
    assert said(PendingSummary(Clock(0.0)), plan, pending) == (
        "Mooring: on n0 (of 2 nodes): request r wants 2: 1 on the node; "
        "nearest fix: count of request r 2 → 1."
    )


def test_it_asks_for_the_driver_where_no_device_is_of_the_class() -> None:
    plan = planned(1)
    (node,) = plan.before.nodes
    room = NodeStatus(allocatable={"pods": Quantity.from_int(110)})
    plan.cluster.put_node(replace(node, status=room))
    selector = DeviceSelector(cel=CELDeviceSelector(expression='device.driver == "absent"'))
    class_ = DeviceClass(metadata=ObjectMeta(name="c"), spec=DeviceClassSpec(selectors=(selector,)))
    plan.cluster.put_class(class_)
    (waiting,) = plan.pending
    pending = schedule(plan.cluster, waiting.pod)
    assert isinstance(pending, Pending)
    assert said(PendingSummary(Clock(0.0)), plan, pending) == (
        "Mooring: on n0: request r wants 2: 1 on the node → 0 of the class; "
        "nobody publishes such devices there: see whether their driver runs."
    )


def test_it_names_what_the_node_has_not() -> None:
    plan = planned(1)
    (pending,) = plan.pending
    assert (
        said(PendingSummary(Clock(0.0)), plan, pending)
        == "Mooring: on n0: 0 pods are there, 0 may be."
    )


def test_it_is_asked_once_for_pods_of_which_kubernetes_says_the_same() -> None:
    plan = planned(1)
    (pending,) = plan.pending
    clock = Clock(0.0)
    briefly = PendingSummary(clock)
    first = said(briefly, plan, pending)
    clock.s, clock.step_s = 1e6, 1e6  # no time for anything
    assert said(briefly, plan, pending) == first


def test_without_time_it_says_nothing_and_later_it_does_again() -> None:
    plan = planned(1)
    (pending,) = plan.pending
    clock = Clock(0.4)
    briefly = PendingSummary(clock)
    found = [
        bool(said(briefly, plan, replace(pending, message=str(number)))) for number in range(8)
    ]
    assert not all(found)
    clock.s, clock.step_s = clock.s + 1000, 0.0
    assert said(briefly, plan, pending)
