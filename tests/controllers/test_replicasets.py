"""Replica sets keep as many pods as they want."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.apps import ReplicaSet
from moorage.api.core import Pod
from moorage.client.writes import Create, Patch, Target
from moorage.controllers.controller import Answers, Lookup, Step, WriteRefused
from moorage.controllers.replicasets import ReplicaSetController
from tests.controllers.things import NOW, World, counted_reads, replica_set, thing


def planned(world: World, answers: Answers) -> list[Step]:
    key = ("default", "web")
    return list(ReplicaSetController().reconcile(world.model.objects, key, NOW, answers))


def test_a_set_gets_its_pods_and_tells_of_them() -> None:
    world = World(ReplicaSetController())
    world.put(replica_set(replicas=2))
    pods = world.all(Pod)
    assert len(pods) == 2
    (owner,) = pods[0].metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("ReplicaSet", "web", True)
    assert pods[0].metadata.generate_name == "web-"
    assert sorted(world.told("SuccessfulCreate")) == [
        f"Created pod: {pod.metadata.name}" for pod in pods
    ]
    assert world.get(ReplicaSet, "web").status.replicas == 2


def test_the_selectors_of_sets_that_may_adopt_pods_are_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = counted_reads(monkeypatch)
    world = World(ReplicaSetController())
    world.put(replica_set(replicas=1))
    for number in range(20):
        world.put(thing("v1", "Pod", f"free-{number}", metadata={"labels": {"number": "1"}}))
    assert len(reads) == len({id(each) for each in reads}) < 5


def test_planning_twice_from_one_copy_names_the_same_pods() -> None:
    world = World(ReplicaSetController())
    world.model.put(replica_set(replicas=3))
    first, second = (
        list(ReplicaSetController().reconcile(world.model.objects, ("default", "web"), NOW, {}))
        for _ in "12"
    )
    assert first == second
    assert sum(isinstance(step, Create) for step in first) == 3


def test_a_pod_that_goes_is_replaced() -> None:
    world = World(ReplicaSetController())
    world.put(replica_set(replicas=2))
    gone = world.all(Pod)[0]
    world.delete(gone)
    assert len(world.all(Pod)) == 2
    assert gone.metadata.uid not in {pod.metadata.uid for pod in world.all(Pod)}


def test_fewer_are_wanted_and_pods_without_a_node_go_first() -> None:
    world = World(ReplicaSetController())
    world.put(replica_set(replicas=3))
    for pod in world.all(Pod)[1:]:
        world.report(pod, "Running", ready=True)
    waiting = world.all(Pod)[0]
    world.change(replica_set(), replicas=2)
    assert waiting.metadata.name not in {pod.metadata.name for pod in world.all(Pod)}
    assert world.told("SuccessfulDelete") == [f"Deleted pod: {waiting.metadata.name}"]


def test_status_counts_ready_and_available_pods_after_their_time() -> None:
    world = World(ReplicaSetController())
    world.put(replica_set(replicas=1, minReadySeconds=10))
    world.run_all()
    status = world.get(ReplicaSet, "web").status
    assert (status.ready_replicas, status.available_replicas) == (1, 0)
    world.advance(11)
    assert world.get(ReplicaSet, "web").status.available_replicas == 1


def test_a_matching_orphan_is_adopted_and_one_that_no_longer_matches_is_let_go() -> None:
    world = World(ReplicaSetController())
    world.put(thing("v1", "Pod", "alone", metadata={"labels": {"app": "web"}}))
    world.put(replica_set(replicas=1))
    (pod,) = world.all(Pod)
    assert pod.metadata.owner_references[0].name == "web"
    world.model.write(Patch(Target.of(pod), {"metadata": {"labels": {"app": "other"}}}))
    world.settle()
    alone = world.get(Pod, "alone")
    assert alone.metadata.owner_references == ()
    assert len(world.all(Pod)) == 2


def test_an_orphan_is_not_adopted_by_a_set_that_is_gone() -> None:
    """The copy still has the set; the server does not."""
    world = World(ReplicaSetController())
    world.model.put(replica_set(replicas=1))
    world.model.put(thing("v1", "Pod", "alone", metadata={"labels": {"app": "web"}}))
    answers: Answers = {Lookup(ReplicaSet, "default", "web"): None}
    steps = list(
        ReplicaSetController().reconcile(world.model.objects, ("default", "web"), NOW, answers)
    )
    assert not any(isinstance(step, Patch) for step in steps)


def test_a_refused_pod_is_told_in_events_and_status_and_forgotten_when_it_works() -> None:
    world = World(ReplicaSetController())
    world.model.admits = lambda value: (
        WriteRefused("Forbidden", "exceeded quota: q") if isinstance(value, Pod) else None
    )
    world.put(replica_set(replicas=1))
    world.advance(2)
    (condition,) = world.get(ReplicaSet, "web").status.conditions
    assert (condition.type, condition.reason) == ("ReplicaFailure", "FailedCreate")
    assert condition.message == "exceeded quota: q"
    assert world.told("FailedCreate")[0] == "Error creating: exceeded quota: q"
    world.model.admits = lambda value: None
    world.advance(60)
    assert world.get(ReplicaSet, "web").status.conditions == ()
    assert len(world.all(Pod)) == 1


def test_after_a_refusal_one_pod_is_tried_and_then_the_others() -> None:
    world = World(ReplicaSetController())
    tried: list[Any] = []

    def refuse(value: Any) -> WriteRefused | None:
        if not isinstance(value, Pod):
            return None
        tried.append(value)
        return WriteRefused("Forbidden", "exceeded quota: q")

    world.model.admits = refuse
    world.put(replica_set(replicas=50))
    objects, key = world.model.objects, ("default", "web")
    (controller,) = world.controllers
    steps = list(controller.reconcile(objects, key, NOW, {}))
    assert sum(isinstance(step, Create) for step in steps) == 1
    world.model.admits = lambda value: None
    world.advance(600)
    assert len(world.all(Pod)) == 50


def test_a_namespace_that_is_being_deleted_is_no_news() -> None:
    world = World(ReplicaSetController())
    why = "unable to create new content in namespace default because it is being terminated"
    world.model.admits = lambda value: (
        WriteRefused("Forbidden", why) if isinstance(value, Pod) else None
    )
    world.put(replica_set(replicas=3))
    assert world.told("FailedCreate") == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_any_history_ends_with_as_many_pods_as_are_wanted(history: list[tuple[int, int]]) -> None:
    world = World(ReplicaSetController())
    world.put(replica_set(replicas=1))
    wanted = 1
    for wanted, lost in history:
        world.change(replica_set(), replicas=wanted)
        for pod in world.all(Pod)[:lost]:
            world.delete(pod)
    assert len(world.all(Pod)) == wanted
    assert world.get(ReplicaSet, "web").status.replicas == wanted
