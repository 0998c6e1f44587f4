"""Another order of arrival is offered where it places more pods, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core import Node, Pod
from moorage.insight.plan import arrival_orders
from moorage.insight.plan.arrival_orders import BetterOrder, better_order
from moorage.insight.plan.planner import plan
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.plan.test_plan import CONTEXT
from tests.scheduler.makers import node, pod


# A small pod goes to the larger node, since more is left there. A large one fits nowhere else.
def nodes(large: str, small: str) -> list[Node]:
    rest = {"memory": "8Gi", "pods": "110"}
    sizes = {"large": large, "small": small}
    return [node(name, allocatable={"cpu": cpu, **rest}) for name, cpu in sizes.items()]


NODES = nodes("4", "2")


def owned(name: str, owner: str, cpu: str, **spec: Any) -> Pod:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
    metadata = {"ownerReferences": [{**reference, "controller": True}]}
    return pod(name, requests={"cpu": cpu}, metadata=metadata, **spec)


def small(name: str = "small", **spec: Any) -> Pod:
    return pod(name, requests={"cpu": "2"}, **spec)


def large(name: str = "large", **spec: Any) -> Pod:
    return pod(name, requests={"cpu": "4"}, **spec)


def found(*objects: Pod | Node, shown: set[str] | None = None) -> BetterOrder | None:
    made = plan(Snapshot.of([*NODES, *objects]), CONTEXT)
    return better_order(made, CONTEXT, shown=shown)


def test_a_pod_that_came_too_late_comes_first() -> None:
    better = found(small(), large())
    assert better is not None
    assert better.arrival == ("default/large", "default/small")
    assert better.placed == 2


def test_an_order_that_places_more_is_offered_though_it_does_not_place_all() -> None:
    better = found(small(), large(), large("another"))
    assert better is not None
    assert better.placed == 2
    assert better.arrival[0] == "default/large"


def test_pods_of_one_owner_keep_their_order() -> None:
    better = found(
        *nodes("6", "2"),
        *(owned(f"web-{number}", "web", "1") for number in range(2)),
        *(owned(f"db-{number}", "db", "3") for number in range(2)),
    )
    assert better is not None
    assert better.arrival == tuple(f"default/{name}" for name in ("db-0", "db-1", "web-0", "web-1"))
    assert better.owners[:2] == ("ReplicaSet/default/db",) * 2


@pytest.mark.parametrize(
    "pods",
    [
        [large(), small()],  # which all get a node
        [small(), large(), small("x"), small("y")],  # the best of all orders already
        [small(priority=1), large()],  # who comes first is not a matter of time
        [small(schedulingGates=[{"name": "wait"}]), large()],
        [owned(f"large-{number}", "large", "4") for number in range(2)],  # which are alike
    ],
    ids=["all fit", "no better one", "priority", "gated", "alike"],
)
def test_no_order_is_offered_that_does_not_help(pods: list[Pod]) -> None:
    assert found(*pods) is None


def test_an_order_in_which_hidden_pods_lose_their_node_is_not_offered() -> None:
    hidden, shown = large("hidden"), large("shown")
    assert found(hidden, shown, shown={"default/shown"}) is None
    better = found(small(), hidden, shown={"default/hidden"})
    assert better is not None
    assert better.placed == 1


def test_many_pods_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival_orders, "PODS_MAX", 1)
    assert found(small(), large()) is None
