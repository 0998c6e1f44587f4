"""Which pods Kubernetes would preempt for one of higher priority, and its message."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.preemption import Preemption
from tests.scheduler.makers import HOST, ZONE, node, pod
from tests.scheduler.scenes import (
    claim,
    cluster,
    device_class,
    group,
    placed,
    refused,
    slice_of,
    user,
)

NO_VICTIMS = "No preemption victims found for incoming pod"


def on(where: str, name: str, cpu: str = "2", *, priority: int = 0, **more: Any) -> Pod:
    return pod(name, requests={"cpu": cpu}, nodeName=where, priority=priority, **more)


def wanting_room(cpu: str = "2", *, priority: int = 10, **more: Any) -> Pod:
    return pod("high", requests={"cpu": cpu}, priority=priority, **more)


def found(made: Cluster, one: Pod) -> tuple[str, list[str]] | None:
    """Return the node and the victims, the most important first."""
    before = refused(made, one)
    assert refused(made, one) == before, "asking changes nothing"
    if before.preemption is None:
        return None
    chosen: Preemption = before.preemption
    assert before.message.endswith(
        f". preemption: found a potential placement for pod on node {chosen.node}, "
        f"preempting {len(chosen.victims)} victims"
    )
    return chosen.node, [each.name for each in chosen.victims]


def test_the_least_important_pods_that_are_enough_leave() -> None:
    made = cluster(
        node("node-1"),
        on("node-1", "a", "1", priority=3),
        on("node-1", "b", "1", priority=1),
        on("node-1", "c", "2", priority=2),
    )
    assert found(made, wanting_room("1")) == ("node-1", ["b"])
    assert found(made, wanting_room("2")) == ("node-1", ["c"])
    assert found(made, wanting_room("3")) == ("node-1", ["c", "b"])
    assert found(made, wanting_room("4")) == ("node-1", ["a", "c", "b"])


@pytest.mark.parametrize(
    ("one", "message"),
    [
        pytest.param(
            wanting_room(priority=0),
            "0/2 nodes are available: 2 Insufficient cpu. preemption: "
            f"0/2 nodes are available: 2 {NO_VICTIMS}.",
            id="nobody is less important",
        ),
        pytest.param(
            wanting_room(priority=1),
            "0/2 nodes are available: 2 Insufficient cpu. preemption: "
            f"0/2 nodes are available: 1 Insufficient cpu, 1 {NO_VICTIMS}.",
            id="some are, and that is not enough",
        ),
        pytest.param(
            wanting_room("9"),
            "0/2 nodes are available: 2 Insufficient cpu. preemption: "
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            id="the nodes are too small",
        ),
        pytest.param(
            wanting_room(preemptionPolicy="Never"),
            "0/2 nodes are available: 2 Insufficient cpu. preemption: "
            "not eligible due to preemptionPolicy=Never.",
            id="the pod does not preempt",
        ),
        pytest.param(
            wanting_room(nodeSelector={HOST: "node-9"}),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            id="it may not go there",
        ),
    ],
)
def test_what_is_said_where_preemption_does_not_help(one: Pod, message: str) -> None:
    made = cluster(
        node("node-1"),
        node("node-2"),
        on("node-1", "a", "4", priority=20),
        on("node-2", "b", "3", priority=5),
        on("node-2", "c", "1"),
    )
    outcome = refused(made, one)
    assert outcome.message == message
    assert outcome.preemption is None


@pytest.mark.parametrize(
    ("pods", "chosen"),
    [
        pytest.param(
            [on("node-1", "a", "4", priority=2), on("node-2", "b", "4", priority=1)],
            ("node-2", ["b"]),
            id="the least important first victim",
        ),
        pytest.param(
            [
                on("node-1", "a", "1", priority=2),
                on("node-1", "b", "3", priority=1),
                on("node-2", "c", "4", priority=2),
            ],
            ("node-2", ["c"]),
            id="the smallest sum of priorities",
        ),
        pytest.param(
            [
                on("node-1", "a", "2", status={"startTime": "2026-01-01T00:00:00Z"}),
                on("node-1", "b", "2", status={"startTime": "2026-01-02T00:00:00Z"}),
                on("node-2", "c", "2", status={"startTime": "2026-01-03T00:00:00Z"}),
                on("node-2", "d", "2", status={"startTime": "2026-01-04T00:00:00Z"}),
            ],
            ("node-2", ["c", "d"]),
            id="the youngest",
        ),
        pytest.param(
            [on("node-2", "b", "4"), on("node-1", "a", "4")],
            ("node-1", ["a"]),
            id="of equals the first by name",
        ),
    ],
)
def test_the_node_with_the_cheapest_victims_is_chosen(
    pods: list[Pod], chosen: tuple[str, list[str]]
) -> None:
    made = cluster(node("node-1"), node("node-2"), *pods)
    assert found(made, wanting_room("4")) == chosen


def test_of_pods_with_one_priority_the_older_stay() -> None:
    old, young = {"startTime": "2026-01-01T00:00:00Z"}, {"startTime": "2026-01-02T00:00:00Z"}
    made = cluster(
        node("node-1"), on("node-1", "young", status=young), on("node-1", "old", status=old)
    )
    assert found(made, wanting_room()) == ("node-1", ["young"])


def test_pods_of_a_group_have_its_priority() -> None:
    member = on("node-1", "a", "4", schedulingGroup={"podGroupName": "gang"})
    made = cluster(node("node-1"), member, group(priority=20))
    assert found(made, wanting_room()) is None
    made.put_group(group(priority=5))
    assert found(made, wanting_room()) == ("node-1", ["a"])


def test_company_that_excludes_the_pod_leaves() -> None:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    excluding = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = cluster(
        node("node-1", labels={ZONE: "a"}),
        node("node-2", labels={ZONE: "a"}),
        on("node-1", "alone", "1", affinity=excluding),
        on("node-1", "friendly", "1"),
    )
    high = wanting_room("1", labels={"app": "x"})
    assert found(made, high) == ("node-1", ["alone"])
    assert refused(made, high).message == (
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules. "
        "preemption: found a potential placement for pod on node node-1, preempting 1 victims"
    )


def test_nobody_leaves_for_devices() -> None:
    made = cluster(node("node-1"), device_class(), slice_of("node-1"), claim("a"), claim("b"))
    placed(made, user("low", "a"))
    outcome = refused(made, user("high", "b", priority=10))
    assert outcome.preemption is None
    assert outcome.message == (
        "0/1 nodes are available: 1 cannot allocate all claims. preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_pods_leave_for_one_whose_claim_has_devices_there() -> None:
    made = cluster(
        node("node-1"),
        node("node-2"),
        device_class(),
        slice_of("node-1"),
        claim("c"),
        on("node-1", "low", "4"),
        on("node-2", "low-2", "4"),
    )
    high = user("high", "c", requests={"cpu": "1"}, priority=10)
    assert found(made, high) == ("node-1", ["low"])


def test_only_nodes_with_less_important_pods_are_asked_again() -> None:
    nodes = [node(f"node-{number:03}") for number in range(200)]
    made = cluster(
        *nodes,
        *(on(each.metadata.name, f"p-{each.metadata.name}", "4", priority=20) for each in nodes),
    )
    made.put_pod(on("node-007", "p-node-007", "4", priority=1))
    assert found(made, wanting_room()) == ("node-007", ["p-node-007"])


def test_a_group_that_is_disrupted_as_a_whole_leaves_all_its_nodes() -> None:
    whole = group("whole", priority=1, disruptionMode={"all": {}})
    of: dict[str, Any] = {"schedulingGroup": {"podGroupName": "whole"}}
    made = cluster(
        node("node-1"),
        node("node-2"),
        whole,
        on("node-1", "a", "4", priority=1, **of),
        on("node-2", "b", "1", priority=1, **of),
        on("node-2", "c", "3", priority=20),
    )
    assert found(made, wanting_room("4")) == ("node-1", ["a", "b"])


def test_of_a_group_that_is_disrupted_one_by_one_only_pods_on_the_node_leave() -> None:
    single = group("single", priority=1, disruptionMode={"single": {}})
    of: dict[str, Any] = {"schedulingGroup": {"podGroupName": "single"}}
    made = cluster(
        node("node-1"),
        node("node-2"),
        single,
        on("node-1", "a", "4", priority=1, **of),
        on("node-2", "b", "1", priority=1, **of),
        on("node-2", "c", "3", priority=20),
    )
    assert found(made, wanting_room("4")) == ("node-1", ["a"])
