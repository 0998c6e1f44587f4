"""Pods without nodes, groups without pods, namespaces without accounts."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core import ConfigMap, Namespace, Node, Pod, ServiceAccount
from moorage.api.scheduling import PROTECTION_FINALIZER, PodGroup
from moorage.controllers.controller import Lookup
from moorage.controllers.namespaces import RootCAPublisher, ServiceAccountController
from moorage.controllers.pod_gc import PodGCController
from moorage.controllers.pod_groups import PodGroupProtection
from tests.controllers.things import NOW, World, later, node, thing


def pod(name: str = "p", **spec: Any) -> Any:
    containers = [{"name": "main", "image": "i"}]
    return thing("v1", "Pod", name, spec={"containers": containers, **spec})


# --- pods -------------------------------------------------------------------------------------


def test_pods_of_a_vanished_node_fail_and_go_after_a_while() -> None:
    world = World(PodGCController())
    told: list[Any] = []
    world.put(node("a"), pod(nodeName="a"))
    world.delete(node("a"))
    world.advance(39)
    assert world.get(Pod, "p") is not None
    world.model.follow = lambda change: told.append(change.new)
    world.advance(2)
    assert world.get(Pod, "p") is None
    failed = next(value for value in told if value is not None)
    (condition,) = (c for c in failed.status.conditions if c.type == "DisruptionTarget")
    assert failed.status.phase == "Failed"
    assert (condition.reason, condition.message) == (
        "DeletionByPodGC",
        "PodGC: node no longer exists",
    )


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    world = World(PodGCController())
    world.put(node("a"), pod(nodeName="a"))
    world.delete(node("a"))
    world.advance(20)
    world.put(node("a"))
    world.advance(60)
    assert world.get(Pod, "p") is not None


def test_a_node_that_only_the_copy_misses_keeps_its_pods() -> None:
    controller = PodGCController()
    world = World(controller)
    world.model.put(pod(nodeName="a"))
    ask = Lookup(Node, "", "a")
    list(controller.reconcile(world.model.objects, ("node", "a"), NOW, {}))
    steps = list(
        controller.reconcile(world.model.objects, ("node", "a"), later(50), {ask: node("a")})
    )
    assert steps == []


def test_a_deleted_pod_without_a_node_goes() -> None:
    world = World(PodGCController())
    held = thing("v1", "Pod", "p", metadata={"finalizers": ["example.com/held"]})
    world.put(held)
    world.delete(held)
    assert world.get(Pod, "p").status.phase == "Failed"
    world.change_metadata(held, finalizers=())
    assert world.get(Pod, "p") is None


def test_only_so_many_ended_pods_are_kept_the_newest() -> None:
    world = World(PodGCController(ended_max=2))
    for number in range(4):
        world.put(pod(f"p{number}"))
        world.report(pod(f"p{number}"), "Succeeded")
        world.advance(1)
    assert [each.metadata.name for each in world.all(Pod)] == ["p2", "p3"]


def test_pods_leave_a_node_that_is_out_of_service() -> None:
    world = World(PodGCController())
    world.put(
        node("a", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
    )
    world.put(pod(nodeName="a"), pod("q", nodeName="a"))
    world.delete(pod())
    assert [each.metadata.name for each in world.all(Pod)] == ["q"]


# --- groups -----------------------------------------------------------------------------------


def group() -> Any:
    return thing(
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        "grp",
        metadata={"finalizers": [PROTECTION_FINALIZER]},
        spec={"schedulingPolicy": {"basic": {}}},
    )


@pytest.mark.parametrize("ends", ["deleted", "succeeded"])
def test_a_group_stays_until_its_last_pod_has_ended(ends: str) -> None:
    world = World(PodGroupProtection())
    members = [pod(name, schedulingGroup={"podGroupName": "grp"}) for name in ("a", "b")]
    world.put(group(), *members)
    world.delete(group())
    for member in members:
        assert world.get(PodGroup, "grp") is not None
        if ends == "deleted":
            world.delete(member)
        else:
            world.report(member, "Succeeded")
            world.settle()
    assert world.get(PodGroup, "grp") is None


def test_a_group_that_is_not_to_go_stays_protected() -> None:
    world = World(PodGroupProtection())
    world.put(group())
    assert world.get(PodGroup, "grp").metadata.finalizers == (PROTECTION_FINALIZER,)


# --- namespaces -------------------------------------------------------------------------------


def namespace(name: str = "team", phase: str = "Active") -> Any:
    return thing("v1", "Namespace", name, status={"phase": phase})


def test_every_namespace_has_an_account_and_the_authority() -> None:
    world = World(ServiceAccountController(), RootCAPublisher("PEM"))
    world.put(namespace())
    assert world.get(ServiceAccount, "default", "team") is not None
    found = world.get(ConfigMap, "kube-root-ca.crt", "team")
    assert found.data == {"ca.crt": "PEM"}
    world.delete(world.get(ServiceAccount, "default", "team"))
    world.delete(found)
    assert world.get(ServiceAccount, "default", "team") is not None
    assert world.get(ConfigMap, "kube-root-ca.crt", "team").data == {"ca.crt": "PEM"}


def test_a_changed_authority_is_put_right() -> None:
    world = World(RootCAPublisher("PEM"))
    changed = thing(
        "v1", "ConfigMap", "kube-root-ca.crt", metadata={"namespace": "team"}, data={"x": "y"}
    )
    world.put(changed, namespace())
    assert world.get(ConfigMap, "kube-root-ca.crt", "team").data == {"ca.crt": "PEM"}


def test_a_namespace_on_its_way_out_gets_nothing() -> None:
    world = World(ServiceAccountController(), RootCAPublisher("PEM"))
    world.put(namespace(phase="Terminating"))
    assert world.all(ServiceAccount) == world.all(ConfigMap) == []
    assert len(world.all(Namespace)) == 1
