"""Budgets say how many pods may be disrupted now."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.client.writes import Update
from moorage.controllers.disruption import DisruptionController
from moorage.controllers.replicasets import ReplicaSetController
from tests.controllers.things import World, counted_reads, later, replica_set, thing


def budget(**spec: Any) -> Any:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return thing("policy/v1", "PodDisruptionBudget", "web", spec=body)


def world_of(*values: Any) -> World:
    world = World(ReplicaSetController(), DisruptionController())
    world.put(*values)
    world.run_all()
    return world


def status(world: World) -> Any:
    return world.get(PodDisruptionBudget, "web").status


@pytest.mark.parametrize(
    ("spec", "allowed", "desired"),
    [
        ({"minAvailable": 3}, 1, 3),
        ({"minAvailable": "50%"}, 2, 2),
        ({"minAvailable": 5}, 0, 5),
        ({"maxUnavailable": 1}, 1, 3),
        ({"maxUnavailable": "30%"}, 2, 2),
        ({"maxUnavailable": 0}, 0, 4),
    ],
)
def test_the_allowed_disruptions_follow_from_the_budget(
    spec: Any, allowed: int, desired: int
) -> None:
    found = status(world_of(replica_set(replicas=4), budget(**spec)))
    assert (found.disruptions_allowed, found.desired_healthy) == (allowed, desired)
    assert (found.current_healthy, found.expected_pods) == (4, 4)
    (condition,) = found.conditions
    reason = "SufficientPods" if allowed else "InsufficientPods"
    assert (condition.type, condition.reason) == ("DisruptionAllowed", reason)


def test_a_selector_is_read_once_however_many_pods_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = counted_reads(monkeypatch)
    world = world_of(replica_set(replicas=20), budget(minAvailable=1))
    assert status(world).expected_pods == 20
    assert len({id(each) for each in reads}) == len(reads) == 2, "that of the budget and of the set"


def test_a_pod_that_is_not_ready_is_not_healthy() -> None:
    world = world_of(replica_set(replicas=3), budget(minAvailable=2))
    world.report(world.all(Pod)[0], "Running", ready=False)
    world.settle()
    assert (status(world).current_healthy, status(world).disruptions_allowed) == (2, 0)


def test_pods_whose_controller_cannot_be_found_fail_a_relative_budget() -> None:
    owner = {"apiVersion": "x.io/v1", "kind": "Odd", "name": "o", "uid": "u", "controller": True}
    odd = thing("v1", "Pod", "odd", metadata={"labels": {"app": "web"}, "ownerReferences": [owner]})
    world = World(DisruptionController())
    world.put(budget(maxUnavailable=1), odd)
    (condition,) = status(world).conditions
    assert condition.reason == "SyncFailed"
    assert condition.message == 'found no controllers for pod "odd"'
    assert status(world).disruptions_allowed == 0


def test_an_eviction_counts_until_it_is_confirmed_or_two_minutes_have_passed() -> None:
    world = world_of(replica_set(replicas=3), budget(minAvailable=1))
    current = world.get(PodDisruptionBudget, "web")
    name = world.all(Pod)[0].metadata.name
    changed = replace(current.status, disrupted_pods={name: later(0)})
    world.model.write(Update(replace(current, status=changed), "status"))
    world.settle()
    assert (status(world).disruptions_allowed, set(status(world).disrupted_pods)) == (1, {name})
    world.advance(121)
    assert (status(world).disruptions_allowed, status(world).disrupted_pods) == (2, {})
