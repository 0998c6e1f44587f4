"""Preemption with PodDisruptionBudgets: victims that violate one are the last choice."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.scheduler.cluster import Cluster
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import cluster, refused
from tests.scheduler.test_group_preemption import high, low, run, victims_of


def budget(name: str = "b", *, allowed: int = 0, **more: Any) -> PodDisruptionBudget:
    labels = more.pop("labels", {"app": name})
    tree = {
        "metadata": {"name": name, "namespace": more.pop("namespace", "default")},
        "spec": more.pop("spec", {"selector": {"matchLabels": labels}}),
        "status": {"disruptionsAllowed": allowed, **more},
    }
    return decode_tree(tree, PodDisruptionBudget).value


def on(where: str, name: str, *, priority: int = 0, **labels: str) -> Pod:
    return pod(name, requests={"cpu": "2"}, nodeName=where, priority=priority, labels=labels)


def found(made: Cluster, cpu: str = "2") -> tuple[str, list[str], int]:
    """Return the node, the victims and the violations for a pod of high priority."""
    chosen = refused(made, pod("high", requests={"cpu": cpu}, priority=10)).preemption
    assert chosen is not None
    return chosen.node, [each.name for each in chosen.victims], chosen.violations


def test_a_pod_with_a_budget_that_is_used_up_stays_before_more_important_ones() -> None:
    made = cluster(node("node-1"), on("node-1", "a", priority=5), on("node-1", "b", app="b"))
    assert found(made) == ("node-1", ["b"], 0)
    made.disruption_budgets.put(budget())
    assert found(made) == ("node-1", ["a"], 0)
    made.disruption_budgets.put(budget(allowed=1))
    assert found(made) == ("node-1", ["b"], 0)
    made.disruption_budgets.put(budget())
    made.disruption_budgets.remove(budget())
    assert found(made) == ("node-1", ["b"], 0)


def test_where_nothing_else_helps_budgets_are_violated_on_the_node_with_fewest() -> None:
    made = cluster(
        node("node-1"),
        node("node-2"),
        *(on("node-1", name, app="b") for name in ("a", "b")),
        on("node-2", "c", app="b"),
        on("node-2", "d", priority=9),
    )
    made.disruption_budgets.put(budget(allowed=1))
    assert found(made, "4") == ("node-2", ["d", "c"], 0)
    made.disruption_budgets.put(budget())
    assert found(made, "4") == ("node-2", ["d", "c"], 1)


@pytest.mark.parametrize(
    "one",
    [
        budget(spec={}),
        budget(spec={"selector": {}}),
        budget(namespace="other"),
        budget(labels={"app": "other"}),
        budget(disruptedPods={"b": "2026-01-01T00:00:00Z"}),
    ],
    ids=["no selector", "empty selector", "other namespace", "other pods", "already disrupted"],
)
def test_budgets_that_do_not_concern_a_pod_do_not_protect_it(one: PodDisruptionBudget) -> None:
    made = cluster(node("node-1"), on("node-1", "a", priority=5), on("node-1", "b", app="b"))
    made.disruption_budgets.put(one)
    assert found(made) == ("node-1", ["b"], 0)


def test_groups_spare_pods_with_budgets_too() -> None:
    made = cluster(node("node-1"), low("a", labels={"app": "b"}), low("b", priority=3))
    assert victims_of(run(made, high("x"), least=1)) == ["a"]
    made.disruption_budgets.put(budget())
    assert victims_of(run(made, high("x"), least=1)) == ["b"]
    made.disruption_budgets.put(budget(allowed=1))
    assert victims_of(run(made, high("x"), least=1)) == ["a"]
