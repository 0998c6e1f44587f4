"""Numbered pods come, go and are replaced in order, and keep their claims."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.apps import ControllerRevision, StatefulSet
from moorage.api.core import PersistentVolumeClaim, Pod
from moorage.api.core.pod import PodTemplateSpec
from moorage.client.writes import Create
from moorage.controllers.statefulsets import StatefulSetController
from tests.controllers.things import NOW, World, template, thing

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(replicas: int = 3, *, image: str = "db:1", **spec: Any) -> Any:
    body = {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": template("db", image),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        **spec,
    }
    return thing("apps/v1", "StatefulSet", "db", spec=body)


def world_of(*values: Any) -> World:
    world = World(StatefulSetController())
    world.put(*values)
    return world


def names(world: World) -> list[str]:
    return [pod.metadata.name for pod in world.all(Pod)]


def ready(world: World, name: str) -> None:
    world.report(world.get(Pod, name), "Running", ready=True)
    world.settle()


def images(world: World) -> list[str]:
    return [pod.spec.containers[0].image for pod in world.all(Pod)]


def with_image(world: World, image: str, **more: Any) -> None:
    owner = world.get(StatefulSet, "db")
    container = owner.spec.template.spec.containers[0]
    spec = replace(owner.spec.template.spec, containers=(replace(container, image=image),))
    changed = PodTemplateSpec(metadata=owner.spec.template.metadata, spec=spec)
    world.change(owner, template=changed, **more)


def test_pods_come_one_after_the_other_each_with_its_identity() -> None:
    world = world_of(stateful_set())
    assert names(world) == ["db-0"]
    ready(world, "db-0")
    assert names(world) == ["db-0", "db-1"]
    ready(world, "db-1")
    ready(world, "db-2")
    pod = world.get(Pod, "db-2")
    assert (pod.spec.hostname, pod.spec.subdomain) == ("db-2", "db")
    assert pod.metadata.labels["statefulset.kubernetes.io/pod-name"] == "db-2"
    assert pod.metadata.labels["apps.kubernetes.io/pod-index"] == "2"
    revision = world.all(ControllerRevision)[0].metadata.name
    assert pod.metadata.labels["controller-revision-hash"] == revision
    status = world.get(StatefulSet, "db").status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 3, 3)
    assert (status.current_revision, status.update_revision) == (revision, revision)
    assert world.told("SuccessfulCreate")[0] == "create Pod db-0 in StatefulSet db successful"


def test_parallel_pods_come_at_once() -> None:
    world = world_of(stateful_set(podManagementPolicy="Parallel", ordinals={"start": 5}))
    assert names(world) == ["db-5", "db-6", "db-7"]


@pytest.mark.parametrize(("policy", "made"), [("OrderedReady", 1), ("Parallel", 500)])
def test_a_set_that_wants_billions_of_pods_is_no_work_beyond_those_it_gets(
    policy: str, made: int
) -> None:
    most = 2**31 - 1
    world = World(StatefulSetController())
    owner = stateful_set(most, podManagementPolicy=policy, ordinals={"start": most})
    world.model.put(owner)
    controller, objects = world.controllers[0], world.model.objects
    steps = list(controller.reconcile(objects, ("default", "db"), NOW, {}))
    created = [each.value for each in steps if isinstance(each, Create)]
    pods = [each.metadata.name for each in created if isinstance(each, Pod)]
    assert len(pods) == made
    assert pods[0] == f"db-{most}"


def test_a_smaller_set_loses_its_highest_pod_first_and_one_at_a_time() -> None:
    world = world_of(stateful_set())
    world.run_all()
    world.change(world.get(StatefulSet, "db"), replicas=1)
    assert names(world) == ["db-0"]
    order = [m.split()[2] for m in world.told("SuccessfulDelete")]
    assert order == ["db-2", "db-1"]


def test_a_pod_that_is_not_ready_holds_the_next_one_back() -> None:
    world = world_of(stateful_set(2, minReadySeconds=30))
    ready(world, "db-0")
    assert names(world) == ["db-0"]
    world.advance(31)
    assert names(world) == ["db-0", "db-1"]


def test_a_new_template_replaces_pods_from_the_top() -> None:
    world = world_of(stateful_set())
    world.run_all()
    with_image(world, "db:2")
    assert images(world) == ["db:1", "db:1", "db:2"]
    ready(world, "db-2")
    assert images(world) == ["db:1", "db:2", "db:2"]
    world.run_all()
    assert images(world) == ["db:2"] * 3
    status = world.get(StatefulSet, "db").status
    assert status.current_revision == status.update_revision
    assert sorted(r.revision for r in world.all(ControllerRevision)) == [1, 2]


def test_the_partition_keeps_lower_pods_on_the_old_revision_even_if_they_are_made_anew() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    world = world_of(stateful_set(updateStrategy=rolling))
    world.run_all()
    with_image(world, "db:2")
    world.run_all()
    assert images(world) == ["db:1", "db:1", "db:2"]
    world.delete(world.get(Pod, "db-0"))
    world.run_all()
    assert images(world) == ["db:1", "db:1", "db:2"]
    status = world.get(StatefulSet, "db").status
    assert (status.current_replicas, status.updated_replicas) == (2, 1)


def test_max_unavailable_replaces_several_at_a_time() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}
    world = world_of(stateful_set(4, updateStrategy=rolling, podManagementPolicy="Parallel"))
    world.run_all()
    with_image(world, "db:2")
    assert images(world) == ["db:1", "db:1", "db:2", "db:2"]


def test_on_delete_waits_for_somebody_to_delete_pods() -> None:
    world = world_of(stateful_set(2, updateStrategy={"type": "OnDelete"}))
    world.run_all()
    with_image(world, "db:2")
    assert images(world) == ["db:1", "db:1"]
    world.delete(world.get(Pod, "db-1"))
    assert images(world) == ["db:1", "db:2"]


def test_going_back_to_an_old_template_gives_its_revision_a_new_number() -> None:
    world = world_of(stateful_set(1))
    world.run_all()
    first = world.all(ControllerRevision)[0].metadata.name
    with_image(world, "db:2")
    world.run_all()
    with_image(world, "db:1")
    world.run_all()
    revisions = {r.metadata.name: r.revision for r in world.all(ControllerRevision)}
    assert len(revisions) == 2
    assert revisions[first] == 3
    assert world.get(StatefulSet, "db").status.update_revision == first


def test_old_revisions_are_deleted_beyond_the_limit() -> None:
    world = world_of(stateful_set(1, revisionHistoryLimit=1))
    for number in range(2, 6):
        with_image(world, f"db:{number}")
        world.run_all()
    assert sorted(r.revision for r in world.all(ControllerRevision)) == [4, 5]


def test_a_pod_that_ended_is_replaced() -> None:
    world = world_of(stateful_set(1))
    world.report(world.get(Pod, "db-0"), "Failed")
    world.settle()
    assert world.get(Pod, "db-0").status.phase != "Failed"


# --- claims ------------------------------------------------------------------------------------


def test_every_pod_has_a_claim_of_its_own_which_outlives_it() -> None:
    world = world_of(stateful_set(2, volumeClaimTemplates=[CLAIM]))
    world.run_all()
    claims = [claim.metadata.name for claim in world.all(PersistentVolumeClaim)]
    assert claims == ["data-db-0", "data-db-1"]
    claim = world.get(PersistentVolumeClaim, "data-db-1")
    assert (claim.metadata.labels, claim.metadata.owner_references) == ({"app": "db"}, ())
    volumes = world.get(Pod, "db-1").spec.volumes
    assert volumes[0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    world.change(world.get(StatefulSet, "db"), replicas=0)
    assert len(world.all(PersistentVolumeClaim)) == 2


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "before", "after"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["StatefulSet"], ["StatefulSet"]),
        ("Retain", "Delete", [], ["Pod"]),
        ("Delete", "Delete", ["StatefulSet"], ["Pod"]),
    ],
)
def test_the_retention_policy_says_who_owns_claims(
    when_deleted: str, when_scaled: str, before: list[str], after: list[str]
) -> None:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    world = world_of(
        stateful_set(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    )
    world.run_all()

    def owners(name: str) -> list[str]:
        claim = world.get(PersistentVolumeClaim, name)
        return [reference.kind for reference in claim.metadata.owner_references]

    assert owners("data-db-1") == before
    world.change(world.get(StatefulSet, "db"), replicas=1)
    assert owners("data-db-1") == after
    assert owners("data-db-0") == before


def test_a_pod_waits_until_its_claim_that_is_deleted_is_gone() -> None:
    world = world_of(stateful_set(1, volumeClaimTemplates=[CLAIM]))
    claim = world.get(PersistentVolumeClaim, "data-db-0")
    world.change_metadata(claim, finalizers=("kubernetes.io/pvc-protection",))
    world.delete(claim)
    world.delete(world.get(Pod, "db-0"), grace_s=0)
    assert names(world) == []
    world.change_metadata(world.get(PersistentVolumeClaim, "data-db-0"), finalizers=())
    assert names(world) == ["db-0"]
