"""Every node that may have a daemon gets one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.apps import DaemonSet
from moorage.api.core import Node, Pod, Taint
from moorage.controllers.daemonsets import DaemonSetController, node_of_daemon
from tests.controllers.things import World, node, template, thing


def daemon_set(image: str = "agent:1", *, pods: Any = None, **spec: Any) -> Any:
    body = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": template("agent", image, **(pods or {})),
        **spec,
    }
    return thing("apps/v1", "DaemonSet", "agent", spec=body)


def nodes_with_pods(world: World) -> list[str]:
    return sorted(node_of_daemon(pod) for pod in world.all(Pod))


def world_of(*values: Any) -> World:
    world = World(DaemonSetController())
    world.put(*values)
    return world


def test_every_node_gets_one_pod_tied_to_it() -> None:
    world = world_of(node("a"), node("b"), daemon_set())
    assert nodes_with_pods(world) == ["a", "b"]
    pod = world.all(Pod)[0]
    assert pod.spec.node_name == ""
    assert "node.kubernetes.io/unschedulable" in {t.key for t in pod.spec.tolerations}
    assert pod.metadata.labels["controller-revision-hash"]


def test_nodes_come_and_go() -> None:
    world = world_of(node("a"), daemon_set())
    world.put(node("b"))
    assert nodes_with_pods(world) == ["a", "b"]
    world.delete(node("a"))
    assert nodes_with_pods(world) == ["b"]


def test_only_nodes_that_are_selected_and_tolerated() -> None:
    world = world_of(
        node("a"),
        node("b", taints=[{"key": "own", "effect": "NoSchedule"}]),
        node("c"),
        daemon_set(pods={"nodeSelector": {"node": "c"}}),
    )
    assert nodes_with_pods(world) == ["c"]


def test_a_taint_that_keeps_new_pods_out_leaves_those_that_are_there() -> None:
    world = world_of(node("a"), daemon_set())
    keep_out, throw_out = (Taint(key="own", effect=e) for e in ("NoSchedule", "NoExecute"))
    world.change(node("a"), taints=(keep_out,))
    assert nodes_with_pods(world) == ["a"]
    assert world.get(DaemonSet, "agent").status.number_misscheduled == 1
    world.change(node("a"), taints=(throw_out,))
    assert nodes_with_pods(world) == []


def test_the_status_counts_nodes() -> None:
    world = world_of(node("a"), node("b"), daemon_set())
    world.report(world.all(Pod)[0], "Running", ready=True)
    world.settle()
    status = world.get(DaemonSet, "agent").status
    assert (status.desired_number_scheduled, status.current_number_scheduled) == (2, 2)
    assert (status.number_ready, status.number_available, status.number_unavailable) == (1, 1, 1)


def test_a_new_template_replaces_pods_one_at_a_time() -> None:
    world = world_of(*(node(name) for name in "abc"), daemon_set())
    world.run_all()
    world.change(daemon_set(), template=daemon_set("agent:2").spec.template)
    images = sorted(pod.spec.containers[0].image for pod in world.all(Pod))
    assert images == ["agent:1", "agent:1", "agent:2"], "the new one is not ready yet"
    world.run_all()
    assert {pod.spec.containers[0].image for pod in world.all(Pod)} == {"agent:2"}
    assert world.get(DaemonSet, "agent").status.updated_number_scheduled == 3


def test_with_on_delete_nothing_is_replaced_by_itself() -> None:
    world = world_of(node("a"), daemon_set(updateStrategy={"type": "OnDelete"}))
    world.run_all()
    world.change(daemon_set(), template=daemon_set("agent:2").spec.template)
    assert world.all(Pod)[0].spec.containers[0].image == "agent:1"
    world.delete(world.all(Pod)[0])
    assert world.all(Pod)[0].spec.containers[0].image == "agent:2"


def test_a_failed_daemon_is_replaced_after_a_moment() -> None:
    world = world_of(node("a"), daemon_set())
    (first,) = world.all(Pod)
    world.report(first, "Failed")
    world.settle()
    world.advance(2)
    (second,) = world.all(Pod)
    assert second.metadata.uid != first.metadata.uid
    assert world.told("FailedDaemonPod") == [
        f"Found failed daemon pod default/{first.metadata.name} on node a, will try to kill it"
    ]


Moves = st.lists(st.tuples(st.sampled_from("+-tulf"), st.sampled_from("abcd")), max_size=14)


@settings(max_examples=80)
@given(Moves)
def test_any_history_ends_with_one_pod_on_every_fitting_node(moves: list[tuple[str, str]]) -> None:
    world = world_of(daemon_set())
    for what, name in moves:
        _play(world, what, name)
    world.advance(2)
    fitting = [n.metadata.name for n in world.all(Node) if not n.spec.taints]
    assert nodes_with_pods(world) == sorted(fitting)
    status = world.get(DaemonSet, "agent").status
    assert status.desired_number_scheduled == status.current_number_scheduled == len(fitting)


def _play(world: World, what: str, name: str) -> None:
    found = world.get(Node, name, "")
    pods = [pod for pod in world.all(Pod) if node_of_daemon(pod) == name]
    if what == "+" and found is None:
        world.put(node(name))
    if found is None:
        return
    match what:
        case "-":
            world.delete(found)
        case "t":
            world.change(found, taints=(Taint(key="k", effect="NoExecute"),))
        case "u":
            world.change(found, taints=())
        case "l" if pods:
            world.delete(pods[0])
        case "f" if pods:
            world.report(pods[0], "Failed")
            world.settle()


def test_a_selector_that_misses_its_own_pods_makes_none() -> None:
    value = daemon_set()
    selector = replace(value.spec.selector, match_labels={"app": "other"})
    world = world_of(node("a"), replace(value, spec=replace(value.spec, selector=selector)))
    assert world.all(Pod) == []
