"""Volumes of pods that are claims: the folders behind them, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import PersistentVolumeClaim, Pod
from moorage.client.errors import UnavailableError
from moorage.node.errors import ConfigError, SourceError
from moorage.node.pods.volume_claims import ClaimedVolume, claimed_volumes
from moorage.node.pods.volumes import Materials, make, mounts_of, volumes_of
from tests.node.world import container, make_pod

BOUND = {"phase": "Bound"}


class Cluster:
    """A client that has one claim and one volume."""

    def __init__(self, claim: dict[str, Any] | None, volume: dict[str, Any] | None) -> None:
        self._claim, self._volume = claim, volume

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        tree = self._claim if struct is PersistentVolumeClaim else self._volume
        if tree is None or tree["metadata"]["name"] != name:
            return None
        return decode_tree(tree, struct).value

    async def write(self, write: Any) -> Any:
        raise AssertionError(write)


def claim(name: str = "data", status: dict[str, Any] = BOUND, **metadata: Any) -> dict[str, Any]:
    own = {"name": name, "namespace": "default", "uid": "c-1", **metadata}
    return {"metadata": own, "spec": {"volumeName": "v-1"}, "status": status}


def volume(uid: str = "c-1", **spec: Any) -> dict[str, Any]:
    reference = {"namespace": "default", "name": "data", "uid": uid}
    return {"metadata": {"name": "v-1"}, "spec": {"claimRef": reference, **spec}}


def pod(**source: Any) -> Pod:
    source = source or {"persistentVolumeClaim": {"claimName": "data"}}
    return make_pod(
        container(volumeMounts=[{"name": "d", "mountPath": "/data"}]),
        volumes=[{"name": "d", **source}],
    )


def found(cluster: Cluster, value: Pod) -> ClaimedVolume:
    async def run() -> ClaimedVolume:
        return (await claimed_volumes(cluster, value))["d"]

    return asyncio.run(run())


def test_the_folder_behind_a_claim_is_mounted(tmp_path: Path) -> None:
    folder = {"path": str(tmp_path / "data"), "type": "DirectoryOrCreate"}
    cluster = Cluster(claim(), volume(hostPath=folder))
    for read_only, option in ((False, "rw"), (True, "ro")):
        value = pod(persistentVolumeClaim={"claimName": "data", "readOnly": read_only})
        claimed = {"d": found(cluster, value)}
        volumes = volumes_of(value, Materials(tmp_path, claimed=claimed))
        make(volumes)
        (mount,) = mounts_of(value.spec.containers[0], volumes, {})
        assert (mount.host_path, mount.container_path) == (folder["path"], "/data")
        assert option in mount.options
    assert (tmp_path / "data").is_dir()


def test_a_local_volume_must_be_a_folder() -> None:
    cluster = Cluster(claim(), volume(local={"path": "/mnt/x"}))
    assert found(cluster, pod()) == ClaimedVolume("/mnt/x", "Directory")


def test_a_volume_of_the_pods_own_needs_a_claim_that_the_pod_owns() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p"}
    own = claim("p-d", ownerReferences=[owner])
    value = pod(ephemeral={"volumeClaimTemplate": {}})
    behind = volume(hostPath={"path": "/x"})
    assert found(Cluster(own, behind), value).path == "/x"
    with pytest.raises(ConfigError, match=r"PVC default/p-d was not created for pod default/p"):
        found(Cluster(claim("p-d"), behind), value)


@pytest.mark.parametrize(
    ("own", "behind", "fault"),
    [
        (
            None,
            None,
            'failed to fetch PVC from API server: persistentvolumeclaims "data" not found',
        ),
        (claim(status={"phase": "Pending"}), None, "PVC is not bound"),
        (claim(deletionTimestamp="2026-11-15T12:00:00Z"), None, "PVC is being deleted"),
        (
            claim(),
            None,
            'failed to fetch PV v-1 from API server: persistentvolumes "v-1" not found',
        ),
        (claim(), volume("c-2"), "ClaimRef.UID c-2 does not point to claim.UID c-1"),
        (claim(), {"metadata": {"name": "v-1"}, "spec": {}}, "not yet bound to the claim"),
        (claim(), volume(volumeMode="Block", local={"path": "/x"}), "has volumeMode Block"),
        (claim(), volume(nfs={"server": "s", "path": "/"}), "PV v-1 is of nfs, which is not supp"),
        (claim(), volume(), "PV v-1 is of no kind, which is not supported by this node"),
    ],
)
def test_a_claim_without_a_folder_is_refused(
    own: dict[str, Any] | None, behind: dict[str, Any] | None, fault: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        found(Cluster(own, behind), pod())
    assert str(caught.value).startswith(
        'MountVolume.SetUp failed for volume "d" : error processing PVC default/data: '
    )
    assert fault in str(caught.value)


def test_a_server_that_does_not_answer_is_tried_again() -> None:
    class Silent(Cluster):
        async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
            raise UnavailableError("nobody there")

    with pytest.raises(SourceError, match="nobody there"):
        found(Silent(None, None), pod())
