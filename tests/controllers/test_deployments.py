"""Deployments roll out step by step, within their bounds, and come to rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.apps import Deployment, ReplicaSet
from moorage.api.core import Pod
from moorage.controllers.controller import WriteRefused
from moorage.controllers.deployment_rollout import (
    RolloutBounds,
    SizedReplicaSet,
    bounds_of,
    rolled,
    scaled,
)
from moorage.controllers.deployments import DeploymentController
from moorage.controllers.garbage_collector import GarbageCollector
from moorage.controllers.replicasets import ReplicaSetController
from tests.controllers.things import World, deployment, replica_set


def world_of(*values: Any) -> World:
    world = World(DeploymentController(), ReplicaSetController(), GarbageCollector())
    world.put(*values)
    world.run_all()
    return world


def with_image(image: str) -> Any:
    return deployment(image=image).spec.template


def condition_of(conditions: Any, kind: str) -> Any:
    return next(each for each in conditions if each.type == kind)


def sizes(world: World) -> dict[str, int]:
    """Return replicas of the sets by image."""
    return {
        each.spec.template.spec.containers[0].image: each.spec.replicas
        for each in world.all(ReplicaSet)
    }


def test_a_new_deployment_gets_one_set_and_its_pods() -> None:
    world = world_of(deployment(replicas=3))
    (owned,) = world.all(ReplicaSet)
    mark = owned.metadata.labels["pod-template-hash"]
    assert owned.metadata.name == f"web-{mark}"
    assert owned.spec.selector.match_labels == {"app": "web", "pod-template-hash": mark}
    assert owned.metadata.annotations == {
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        "deployment.kubernetes.io/revision": "1",
    }
    assert all(p.metadata.labels["pod-template-hash"] == mark for p in world.all(Pod))
    assert world.told("ScalingReplicaSet") == [
        f"Scaled up replica set {owned.metadata.name} from 0 to 3"
    ]


def test_the_status_tells_how_it_went() -> None:
    world = world_of(deployment(replicas=2))
    found = world.get(Deployment, "web")
    status = found.status
    assert (status.replicas, status.updated_replicas, status.available_replicas) == (2, 2, 2)
    assert found.metadata.annotations["deployment.kubernetes.io/revision"] == "1"
    available = condition_of(status.conditions, "Available")
    assert (available.status, available.reason) == ("True", "MinimumReplicasAvailable")
    progressing = condition_of(status.conditions, "Progressing")
    (owned,) = world.all(ReplicaSet)
    assert progressing.reason == "NewReplicaSetAvailable"
    assert progressing.message == (
        f'ReplicaSet "{owned.metadata.name}" has successfully progressed.'
    )


def test_another_template_replaces_all_pods() -> None:
    world = world_of(deployment(replicas=4))
    world.change(deployment(), template=with_image("web:2"))
    world.run_all()
    assert sizes(world) == {"web:1": 0, "web:2": 4}
    assert {p.spec.containers[0].image for p in world.all(Pod)} == {"web:2"}
    assert world.get(Deployment, "web").metadata.annotations == {
        "deployment.kubernetes.io/revision": "2"
    }


def test_going_back_uses_the_old_set_and_counts_on() -> None:
    world = world_of(deployment(replicas=1))
    for image in ("web:2", "web:1"):
        world.change(deployment(), template=with_image(image))
        world.run_all()
    assert sizes(world) == {"web:1": 1, "web:2": 0}
    current = next(s for s in world.all(ReplicaSet) if s.spec.replicas)
    assert current.metadata.annotations["deployment.kubernetes.io/revision"] == "3"
    assert current.metadata.annotations["deployment.kubernetes.io/revision-history"] == "1"


def test_a_template_that_never_runs_leaves_enough_old_pods_and_times_out() -> None:
    world = world_of(deployment(replicas=4, progressDeadlineSeconds=60))
    world.change(deployment(), template=with_image("broken"))
    assert sizes(world) == {"web:1": 3, "broken": 2}
    world.advance(70)
    found = condition_of(world.get(Deployment, "web").status.conditions, "Progressing")
    assert (found.status, found.reason) == ("False", "ProgressDeadlineExceeded")
    assert sizes(world) == {"web:1": 3, "broken": 2}


def test_recreate_has_no_old_pod_beside_a_new_one() -> None:
    world = world_of(deployment(replicas=2, strategy={"type": "Recreate"}))
    first = world.all(Pod)[0]
    world.change_spec_of_pod(first, node_name="n")
    world.change(deployment(), template=with_image("web:2"))
    assert sizes(world) == {"web:1": 0}, "a pod on a node takes time to stop"
    world.delete(first, grace_s=0)
    world.run_all()
    assert sizes(world) == {"web:1": 0, "web:2": 2}


def test_a_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    world = world_of(deployment(replicas=2))
    world.change(deployment(), paused=True, template=with_image("web:2"), replicas=3)
    world.run_all()
    assert sizes(world) == {"web:1": 3}
    found = condition_of(world.get(Deployment, "web").status.conditions, "Progressing")
    assert (found.status, found.reason) == ("Unknown", "DeploymentPaused")
    world.change(deployment(), paused=False)
    world.run_all()
    assert sizes(world) == {"web:1": 0, "web:2": 3}


def test_old_sets_beyond_the_history_are_forgotten() -> None:
    world = world_of(deployment(replicas=1, revisionHistoryLimit=1))
    for number in range(2, 6):
        world.change(deployment(), template=with_image(f"web:{number}"))
        world.run_all()
    assert sizes(world) == {"web:4": 0, "web:5": 1}


def test_a_set_that_has_the_name_of_another_template_gives_a_new_hash() -> None:
    world = world_of(deployment(replicas=1))
    (owned,) = world.all(ReplicaSet)
    other = World(DeploymentController(), ReplicaSetController())
    stranger = replica_set(owned.metadata.name, replicas=0)
    other.put(stranger)
    other.put(deployment(replicas=1))
    assert other.get(Deployment, "web").status.collision_count == 1
    assert len(other.all(ReplicaSet)) == 2


def test_why_pods_cannot_be_made_is_told_on_the_deployment() -> None:
    world = World(DeploymentController(), ReplicaSetController())
    world.model.admits = lambda value: (
        WriteRefused("Forbidden", "exceeded quota") if isinstance(value, Pod) else None
    )
    world.put(deployment(replicas=1))
    world.advance(5)
    found = condition_of(world.get(Deployment, "web").status.conditions, "ReplicaFailure")
    assert found.message == "exceeded quota"


def test_deleting_a_deployment_deletes_all_of_it() -> None:
    world = world_of(deployment(replicas=3))
    world.delete(deployment(), "Foreground")
    assert world.all(Deployment) == world.all(ReplicaSet) == world.all(Pod) == []


Steps = st.lists(
    st.one_of(
        st.tuples(st.just("replicas"), st.integers(0, 6)),
        st.tuples(st.just("image"), st.integers(1, 3)),
        st.tuples(st.just("paused"), st.booleans()),
        st.tuples(st.just("lose"), st.integers(1, 3)),
        st.tuples(st.just("run"), st.integers(1, 4)),
        st.tuples(st.just("fail"), st.integers(1, 2)),
    ),
    max_size=12,
)
Limits = st.one_of(st.integers(0, 3), st.sampled_from(["0%", "25%", "50%", "100%"]))


@settings(max_examples=120)
@given(Steps, Limits, Limits, st.booleans())
def test_from_any_state_the_wanted_one_is_reached(
    steps: list[tuple[str, Any]], surge: Any, unavailable: Any, recreates: bool
) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    world = World(DeploymentController(), ReplicaSetController(), GarbageCollector())
    world.put(deployment(replicas=2, strategy={"type": "Recreate"} if recreates else strategy))
    for what, how in steps:
        _play(world, what, how)
        assert _kept_bounds(world)
    world.change(deployment(), paused=False)
    world.run_all()
    found = world.get(Deployment, "web")
    wanted = found.spec.replicas
    image = found.spec.template.spec.containers[0].image
    assert {name: size for name, size in sizes(world).items() if size} == (
        {image: wanted} if wanted else {}
    )
    active = [pod for pod in world.all(Pod) if pod.status.phase == "Running"]
    assert len(active) == wanted
    status = found.status
    assert status.updated_replicas == status.available_replicas == status.replicas == wanted


def _play(world: World, what: str, how: Any) -> None:
    pods = [p for p in world.all(Pod) if p.status.phase != "Failed"]
    match what:
        case "replicas":
            world.change(deployment(), replicas=how)
        case "image":
            world.change(deployment(), template=with_image(f"web:{how}"))
        case "paused":
            world.change(deployment(), paused=how)
        case "lose":
            for pod in pods[:how]:
                world.delete(pod)
        case "run":
            for pod in pods[:how]:
                world.report(pod, "Running", ready=True)
        case "fail":
            for pod in pods[:how]:
                world.report(pod, "Failed")
    world.settle()


def _kept_bounds(world: World) -> bool:
    found = world.get(Deployment, "web")
    bounds = bounds_of(found)
    if found.spec.paused or not bounds.is_rolling:
        return True
    # A wish that shrank can leave more for a moment, but never more than the largest wish had.
    total: int = sum(each.spec.replicas for each in world.all(ReplicaSet))
    return total <= 6 + bounds.surge + 3


@pytest.mark.parametrize(
    ("surge", "unavailable", "wanted", "expected"),
    [
        ("25%", "25%", 10, (3, 2)),
        ("1%", "0%", 10, (1, 0)),
        (0, "1%", 10, (0, 1)),  # both would be nothing
        (2, 20, 4, (2, 4)),
        ("x", None, 4, (0, 1)),
    ],
)
def test_bounds(surge: Any, unavailable: Any, wanted: int, expected: tuple[int, int]) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    found = bounds_of(
        deployment(replicas=wanted, strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    )
    assert (found.surge, found.unavailable) == expected


def set_of(name: str, replicas: int, available: int, before: int | None = None) -> SizedReplicaSet:
    return SizedReplicaSet(name, replicas, available, name, before)


def test_broken_old_pods_go_before_others() -> None:
    bounds = RolloutBounds(10, 3, 2, is_rolling=True)
    new = set_of("new", 3, 0)
    old = [set_of("a", 5, 5), set_of("b", 5, 3)]
    assert rolled(bounds, new, old) == {"b": 3}


def test_sets_keep_their_shares_when_the_wish_grows() -> None:
    bounds = RolloutBounds(20, 3, 2, is_rolling=True)
    new = set_of("new", 5, 5, before=13)
    old = [set_of("old", 8, 8, before=13)]
    assert scaled(bounds, new, old, 13) == {"old": 14, "new": 9}


def test_everything_shrinks_to_nothing() -> None:
    bounds = RolloutBounds(0, 0, 0, is_rolling=True)
    assert scaled(bounds, set_of("new", 2, 2, 4), [set_of("old", 2, 2, 4)], 4) == {
        "new": 0,
        "old": 0,
    }


def test_a_deployment_without_selector_is_left_alone() -> None:
    value = deployment(replicas=1)
    world = World(DeploymentController(), ReplicaSetController())
    world.put(replace(value, spec=replace(value.spec, selector=None)))
    assert world.all(ReplicaSet) == []
