"""Workload controllers with the API server itself, which accepts their writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet
from moorage.api.batch import Job
from moorage.api.core import Pod
from moorage.api.scheduling import PROTECTION_FINALIZER, PodGroup, Workload
from moorage.controllers.controller_manager import workload_controllers
from tests.apiserver.client import Client
from tests.controllers.served import ServedModel
from tests.controllers.settling import Settling
from tests.controllers.test_daemonsets import daemon_set
from tests.controllers.test_jobs import job
from tests.controllers.things import World, deployment, node


class ServedWorld(World):
    """A world whose server is the real one."""

    def __init__(self, client: Client) -> None:
        Settling.__init__(self, ServedModel(client), workload_controllers(authority="PEM"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ServedWorld]:
    client = Client(tmp_path / "store")
    yield ServedWorld(client)
    client.close()


def with_image(image: str) -> Any:
    return deployment(image=image).spec.template


def test_a_deployment_from_its_first_pod_to_its_end(world: ServedWorld) -> None:
    world.put(deployment(replicas=2))
    world.run_all()
    assert world.get(Deployment, "web").status.available_replicas == 2
    world.change(deployment(), template=with_image("web:2"))
    world.run_all()
    assert {pod.spec.containers[0].image for pod in world.all(Pod)} == {"web:2"}
    assert len(world.all(ReplicaSet)) == 2
    found = world.get(Deployment, "web")
    assert found.metadata.annotations["deployment.kubernetes.io/revision"] == "2"
    assert found.status.observed_generation == found.metadata.generation
    world.delete(deployment(), "Foreground")
    assert world.all(Deployment) == world.all(ReplicaSet) == world.all(Pod) == []


def test_orphaned_pods_are_adopted_by_a_new_deployment(world: ServedWorld) -> None:
    world.put(deployment(replicas=2))
    before = {pod.metadata.uid for pod in world.all(Pod)}
    world.delete(deployment(), "Orphan")
    assert {pod.metadata.uid for pod in world.all(Pod)} == before
    assert world.all(ReplicaSet)[0].metadata.owner_references == ()
    world.put(deployment(replicas=2))
    assert {pod.metadata.uid for pod in world.all(Pod)} == before
    assert world.all(ReplicaSet)[0].metadata.owner_references[0].kind == "Deployment"


def test_a_job_with_a_group(world: ServedWorld) -> None:
    world.put(job(scheduling={"schedulingPolicy": {"gang": {"minCount": 1}}}))
    (group,) = world.all(PodGroup)
    assert group.metadata.finalizers == (PROTECTION_FINALIZER,)
    (pod,) = world.all(Pod)
    assert pod.spec.scheduling_group.pod_group_name == group.metadata.name
    world.report(pod, "Succeeded")
    world.settle()
    status = world.get(Job, "work").status
    assert [each.type for each in status.conditions] == ["SuccessCriteriaMet", "Complete"]
    world.delete(job(), "Background")
    left = (Job, Workload, PodGroup, Pod)
    assert [value for struct in left for value in world.all(struct)] == []


def test_daemons(world: ServedWorld) -> None:
    world.put(node("a"), node("b"), daemon_set())
    world.run_all()
    status = world.get(DaemonSet, "agent").status
    assert (status.desired_number_scheduled, status.number_available) == (2, 2)
    world.change(daemon_set(), template=daemon_set("agent:2").spec.template)
    world.run_all()
    assert {pod.spec.containers[0].image for pod in world.all(Pod)} == {"agent:2"}
