"""Replication controllers keep as many pods as they want, as replica sets do."""

from __future__ import annotations

from moorage.api.core import Pod, PodTemplateSpec, ReplicationController, ReplicationControllerSpec
from moorage.api.meta import ObjectMeta
from moorage.controllers.replication_controllers import ReplicationControllerController
from tests.controllers.things import World


def controller(replicas: int = 2, **selector: str) -> ReplicationController:
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}))
    return ReplicationController(
        metadata=ObjectMeta(name="web", namespace="default", uid="rc-uid", generation=1),
        spec=ReplicationControllerSpec(
            replicas=replicas, selector=selector or {"app": "web"}, template=template
        ),
    )


def test_a_controller_gets_its_pods_and_tells_of_them() -> None:
    world = World(ReplicationControllerController())
    world.put(controller())
    pods = world.all(Pod)
    assert len(pods) == 2
    (owner,) = pods[0].metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name) == ("v1", "ReplicationController", "web")
    status = world.get(ReplicationController, "web").status
    assert (status.replicas, status.fully_labeled_replicas, status.observed_generation) == (2, 2, 1)


def test_a_pod_that_goes_is_replaced() -> None:
    world = World(ReplicationControllerController())
    world.put(controller())
    gone = world.all(Pod)[0]
    world.delete(gone)
    assert len(world.all(Pod)) == 2
    assert gone.metadata.uid not in {pod.metadata.uid for pod in world.all(Pod)}


def test_fewer_are_wanted() -> None:
    world = World(ReplicationControllerController())
    world.put(controller(replicas=3))
    world.change(world.get(ReplicationController, "web"), replicas=1)
    assert len(world.all(Pod)) == 1


def test_a_pod_that_nobody_controls_is_adopted() -> None:
    world = World(ReplicationControllerController())
    metadata = ObjectMeta(name="lone", namespace="default", uid="p", labels={"app": "web"})
    world.put(Pod(metadata=metadata))
    world.put(controller(replicas=1))
    (pod,) = world.all(Pod)
    assert pod.metadata.name == "lone"
    assert [owner.uid for owner in pod.metadata.owner_references] == ["rc-uid"]


def test_a_selector_that_misses_the_template_makes_no_pods_without_end() -> None:
    world = World(ReplicationControllerController())
    world.put(controller(app="other"))
    assert world.all(Pod) == []
