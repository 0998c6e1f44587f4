"""All controllers of workloads together, as a cluster runs them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet
from moorage.api.batch import Job
from moorage.api.core import Node, Pod
from moorage.controllers.controller_manager import workload_controllers
from moorage.controllers.garbage_collector import STRUCTS
from tests.controllers.test_daemonsets import daemon_set
from tests.controllers.test_jobs import job
from tests.controllers.things import World, deployment, node


def world_of(*values: Any) -> World:
    world = World(*workload_controllers(authority="PEM"))
    world.put(*values)
    return world


def test_names_are_those_of_kubernetes_and_all_different() -> None:
    names = [each.name for each in workload_controllers(authority="PEM")]
    assert len(names) == len(set(names)) == 23
    assert all(name.endswith("-controller") for name in names)
    assert len(workload_controllers(authority="")) == 22


def test_a_restart_finds_everything_in_order() -> None:
    world = world_of(node("a"), deployment(replicas=2), daemon_set(), job())
    world.run_all()
    before = world.model.revision
    again = World(*workload_controllers(authority="PEM"))
    again.model.objects = world.model.objects
    for controller in again.controllers:
        controller.add_indexes(again.model.objects)
    again.model.revision = before
    again.everything()
    again.settle()
    assert again.model.revision == before, "nothing is written"


Moves = st.lists(
    st.tuples(
        st.sampled_from(["deployment", "daemons", "job", "node", "lose", "fail", "run", "wait"]),
        st.integers(0, 3),
        st.sampled_from(["Background", "Foreground"]),
    ),
    max_size=15,
)


@settings(max_examples=60)
@given(Moves)
def test_after_all_is_deleted_nothing_is_left(moves: list[tuple[str, int, str]]) -> None:
    world = world_of(node("a"), node("b"))
    for what, number, policy in moves:
        _play(world, what, number, policy)
    for struct in (Deployment, DaemonSet, Job, ReplicaSet):
        for value in world.all(struct):
            if world.get(struct, value.metadata.name) is not None:
                world.delete(value, "Foreground")
    world.advance(60)
    left = [value for struct in STRUCTS if struct is not Node for value in world.all(struct)]
    assert left == []


def _play(world: World, what: str, number: int, policy: str) -> None:
    pods = [pod for pod in world.all(Pod) if pod.status.phase not in ("Failed", "Succeeded")]
    made = {"deployment": deployment(replicas=number), "daemons": daemon_set(), "job": job()}
    match what:
        case "deployment" | "daemons" | "job":
            value = made[what]
            if world.get(type(value), value.metadata.name) is None:
                world.put(value)
            else:
                world.delete(value, policy)
        case "node":
            found = world.get(Node, "b", "")
            if found is None:
                world.put(node("b"))
            else:
                world.delete(found)
        case "lose" if pods:
            world.delete(pods[number % len(pods)])
        case "fail" | "run" if pods:
            phase = "Failed" if what == "fail" else "Running"
            world.report(pods[number % len(pods)], phase, ready=what == "run")
            world.settle()
        case "wait":
            world.advance(30)
