"""Claims get volumes: existing ones that fit, or new ones of host directories."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from moorage.controllers.ephemeral_volumes import EphemeralVolumeController
from moorage.controllers.persistent_volumes import PersistentVolumeBinder
from moorage.controllers.volume_protection import ClaimProtection, VolumeProtection
from tests.controllers.things import World, node, thing


def claim(name: str = "data", *, size: str = "1Gi", storage: str = "fast", **spec: Any) -> Any:
    body = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage,
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    metadata = {"uid": f"uid-{name}"}
    return thing("v1", "PersistentVolumeClaim", name, spec=body, metadata=metadata)


def volume(name: str, size: str, **spec: Any) -> Any:
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": f"/data/{name}"},
        **spec,
    }
    return thing("v1", "PersistentVolume", name, spec=body)


def storage_class(mode: str = "Immediate", **fields: Any) -> Any:
    return thing(
        "storage.k8s.io/v1",
        "StorageClass",
        "fast",
        provisioner="kubernetes.io/host-path",
        reclaimPolicy="Delete",
        volumeBindingMode=mode,
        **fields,
    )


def world_of(*values: Any) -> World:
    world = World(
        PersistentVolumeBinder(), EphemeralVolumeController(), ClaimProtection(), VolumeProtection()
    )
    world.put(*values)
    return world


def phase(world: World, name: str = "data") -> tuple[str, str]:
    found = world.get(PersistentVolumeClaim, name)
    return found.status.phase, found.spec.volume_name


def test_a_claim_gets_the_smallest_volume_that_fits() -> None:
    world = world_of(volume("big", "5Gi"), volume("fit", "2Gi"), volume("small", "500Mi"), claim())
    assert phase(world) == ("Bound", "fit")
    bound = world.model.get(PersistentVolume, "", "fit")
    assert (bound.status.phase, bound.spec.claim_ref.name) == ("Bound", "data")
    assert str(world.get(PersistentVolumeClaim, "data").status.capacity["storage"]) == "2Gi"
    assert world.model.get(PersistentVolume, "", "big").status.phase == "Available"


def test_a_claim_waits_for_a_volume_that_fits() -> None:
    world = world_of(volume("other", "5Gi", storageClassName="slow"), claim())
    assert phase(world) == ("Pending", "")
    world.put(volume("late", "1Gi"))
    assert phase(world) == ("Bound", "late")


def test_a_volume_is_made_of_a_host_directory_and_goes_with_its_claim() -> None:
    world = world_of(storage_class(parameters={"path": "/srv/volumes"}), claim())
    assert phase(world) == ("Bound", "pvc-uid-data")
    made = world.model.get(PersistentVolume, "", "pvc-uid-data")
    assert made.spec.host_path["path"] == "/srv/volumes/pvc-uid-data"
    assert (made.status.phase, made.spec.node_affinity) == ("Bound", None)
    world.delete(world.get(PersistentVolumeClaim, "data"))
    assert world.all(PersistentVolume) == []


def test_a_class_that_waits_puts_the_volume_on_the_node_of_the_first_pod() -> None:
    host = node("a")
    world = world_of(storage_class("WaitForFirstConsumer"), host, claim())
    assert phase(world) == ("Pending", "")
    assert world.told("WaitForFirstConsumer")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    world.put(thing("v1", "Pod", "user", spec={"nodeName": "a", "volumes": volumes}))
    assert phase(world) == ("Bound", "pvc-uid-data")
    made = world.model.get(PersistentVolume, "", "pvc-uid-data")
    (term,) = made.spec.node_affinity["required"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["a"]}]


def test_a_claim_in_use_stays_until_its_pod_is_gone() -> None:
    held = claim()
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    world = world_of(storage_class(), held, thing("v1", "Pod", "user", spec={"volumes": volumes}))
    found = world.get(PersistentVolumeClaim, "data")
    world.change_metadata(found, finalizers=("kubernetes.io/pvc-protection",))
    world.delete(world.get(PersistentVolumeClaim, "data"))
    assert world.get(PersistentVolumeClaim, "data").metadata.deletion_timestamp is not None
    world.delete(world.get(Pod, "user"), grace_s=0)
    assert world.all(PersistentVolumeClaim) == []


def test_a_retained_volume_is_released_and_a_lost_one_is_told() -> None:
    world = world_of(volume("fit", "2Gi"), claim())
    world.delete(world.get(PersistentVolumeClaim, "data"))
    assert world.model.get(PersistentVolume, "", "fit").status.phase == "Released"
    world = world_of(volume("fit", "2Gi"), claim())
    world.delete(world.model.get(PersistentVolume, "", "fit"))
    assert phase(world) == ("Lost", "fit")
    assert world.told("ClaimLost")


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"size": "50Gi"}, "requested PV is too small"),
        ({"storage": "slow"}, "storageClassName does not match"),
        ({"volumeMode": "Block"}, "incompatible volumeMode"),
        ({"accessModes": ["ReadWriteMany"]}, "incompatible accessMode"),
        ({"volumeAttributesClassName": "gold"}, "volumeAttributesClassName does not match"),
    ],
)
def test_a_claim_is_not_bound_to_a_named_volume_that_does_not_satisfy_it(
    wanted: dict[str, Any], why: str
) -> None:
    world = world_of(volume("mine", "10Gi"), claim(volumeName="mine", **wanted))
    assert phase(world) == ("Pending", "mine")
    assert set(world.told("VolumeMismatch")) == {f'Cannot bind to requested volume "mine": {why}'}
    assert world.model.get(PersistentVolume, "", "mine").spec.claim_ref is None


@pytest.mark.parametrize(
    ("wanted", "options", "why"),
    [
        (
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}},
            {},
            (
                'plugin "kubernetes.io/host-path" is not a CSI plugin. '
                "Only CSI plugin can provision a claim with a datasource"
            ),
        ),
        (
            {"dataSourceRef": {"apiGroup": "a.example", "kind": "Archive", "name": "other"}},
            {},
            (
                'plugin "kubernetes.io/host-path" is not a CSI plugin. '
                "Only CSI plugin can provision a claim with a datasource"
            ),
        ),
        (
            {"volumeMode": "Block"},
            {},
            (
                "Failed to create provisioner: "
                "kubernetes.io/host-path does not support block volume provisioning"
            ),
        ),
        (
            {},
            {"mountOptions": ["ro", "noatime"]},
            (
                "Mount options are not supported by the provisioner "
                'but StorageClass "fast" has mount options [ro noatime]'
            ),
        ),
    ],
)
def test_a_volume_that_a_directory_cannot_be_is_not_made(
    wanted: dict[str, Any], options: dict[str, Any], why: str
) -> None:
    world = world_of(storage_class(**options), claim(**wanted))
    assert phase(world) == ("Pending", "")
    assert set(world.told("ProvisioningFailed")) == {why}
    assert world.all(PersistentVolume) == []


def ephemeral_pod(**spec: Any) -> Any:
    wanted = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": wanted}}]
    return thing("v1", "Pod", "user", metadata={"uid": "u"}, spec={"volumes": volumes, **spec})


def test_an_ephemeral_volume_gets_a_claim_of_its_pod() -> None:
    world = world_of(storage_class(), ephemeral_pod())
    made = world.get(PersistentVolumeClaim, "user-scratch")
    (owner,) = made.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "user", "u", True)
    assert (made.metadata.labels, made.metadata.annotations["c"]) == ({"a": "b"}, "d")
    assert phase(world, "user-scratch")[0] == "Bound"


def test_the_claim_of_an_ephemeral_volume_waits_for_the_node_of_its_pod() -> None:
    world = world_of(storage_class("WaitForFirstConsumer"), node("a"), ephemeral_pod())
    assert phase(world, "user-scratch") == ("Pending", "")
    world.change_spec_of_pod(world.get(Pod, "user"), node_name="a")
    assert phase(world, "user-scratch")[0] == "Bound"


def test_a_claim_of_somebody_else_is_not_taken_for_an_ephemeral_volume() -> None:
    world = world_of(storage_class(), claim("user-scratch"), ephemeral_pod())
    (text,) = set(world.told("FailedBinding"))
    assert text == (
        "ephemeral volume scratch: PVC default/user-scratch was not created for pod default/user "
        "(pod is not owner)"
    )


def test_a_pod_that_is_being_deleted_gets_no_claim_again() -> None:
    world = world_of(storage_class(), ephemeral_pod(nodeName="a"))
    world.delete(world.get(Pod, "user"))
    assert world.get(Pod, "user").metadata.deletion_timestamp is not None
    world.delete(world.get(PersistentVolumeClaim, "user-scratch"))
    assert world.all(PersistentVolumeClaim) == []
