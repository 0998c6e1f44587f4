"""How much is done to compare two clusters: what did not change is not worked out twice."""

from __future__ import annotations

from typing import Any

from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif import CordonNode, DeletePods, difference
from tests.insight.whatif.clusters import CONTEXT, NOTEBOOK, cluster


def clusters_made(*changes: Any) -> int:
    """Return for how many of the two plans a scheduler's cluster was built."""
    plans: list[Plan] = []

    def make_plan(snapshot: Snapshot) -> Plan:
        plans.append(plan(snapshot, CONTEXT))
        return plans[-1]

    difference(cluster(), changes, CONTEXT, make_plan)
    made: list[Any] = [each.make_cluster for each in plans]
    return sum(each.is_made for each in made)


def test_no_cluster_is_built_where_no_pod_waits_for_a_node() -> None:
    assert clusters_made(CordonNode("node-1")) == 0
    assert clusters_made(DeletePods((NOTEBOOK,))) == 0


def test_a_cluster_is_built_for_pods_that_are_created_again() -> None:
    pods = tuple(f"{each.metadata.namespace}/{each.metadata.name}" for each in cluster().pods)
    assert clusters_made(DeletePods(pods)) == 1


def test_a_plan_makes_its_cluster_once() -> None:
    found = plan(cluster(), CONTEXT)
    assert found.cluster is found.cluster
    assert set(found.cluster.snapshot.nodes) == {"node-1", "node-2"}
