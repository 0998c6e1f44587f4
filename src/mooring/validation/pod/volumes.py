"""Rules for the volumes of a pod: unique names that are DNS labels, and one source each.

A volume's name is the name of a folder on its node, so the rule for names is also one of safety.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mooring.api import names
from mooring.api.fieldpath import Path
from mooring.api.meta import ObjectMeta
from mooring.api.quantity import Quantity
from mooring.validation.checks import each_invalid, label
from mooring.validation.errors import Errors, duplicate, forbidden, invalid, quoted, required
from mooring.validation.pod import network_volumes as network
from mooring.validation.pod.downward import check_volume_file
from mooring.validation.pod.field_rules import (
    Tree,
    choice,
    descending_path,
    file_mode,
    given,
    local_path,
    no_backsteps,
)
from mooring.validation.pod.projections import check_projected
from mooring.validation.volume_claims import check_claim_template

PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_CREATED = "must not reference a PVC that gets created for an ephemeral volume"
_ISCSI_NAME_MAX = 64
_ISCSI_NAME = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
    "iscsi.initiatorName is specified."
)

Volumes = Mapping[str, Tree]  # those without faults, by name


def check_volumes(
    volumes: tuple[Any, ...], metadata: ObjectMeta | None, path: Path
) -> tuple[Errors, Volumes]:
    """Check volumes; also return those that may be mounted.

    A template has no metadata that counts.
    """
    pod_name = "" if metadata is None else metadata.name
    created = _created_claims(volumes, pod_name)
    found: Errors = []
    good: dict[str, Tree] = {}
    for position, volume in enumerate(volumes):
        place = path.index(position)
        faults = _check_source(volume, place, pod_name) + _check_name(volume, place, good)
        if not faults:
            good[volume["name"]] = volume
        found += faults
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if claim in created:
            found.append(
                invalid(place.child("persistentVolumeClaim", "claimName"), claim, _CREATED)
            )
    return found, good


def _created_claims(volumes: tuple[Any, ...], pod_name: str) -> set[str]:
    """Return the names of the claims that are made for a pod's ephemeral volumes."""
    if not pod_name:
        return set()
    return {f"{pod_name}-{v.get('name', '')}" for v in volumes if "ephemeral" in v}


def _check_name(volume: Tree, path: Path, taken: Volumes) -> Errors:
    name, place = volume.get("name", ""), path.child("name")
    found = label(name, place) if name else [required(place)]
    if name in taken:
        found.append(duplicate(place, name))
    return found


def _check_source(volume: Tree, path: Path, pod_name: str) -> Errors:
    found: Errors = []
    chosen = ""
    for source, check in _SOURCES.items():
        if source not in volume:
            continue
        if chosen:
            place = path.child(_MISNAMED.get(source, source))
            found.append(forbidden(place, "may not specify more than 1 volume type"))
        else:
            chosen = source
            # Kubernetes calls this one by an old name.
            place = path.child("persistentDisk" if source == "gcePersistentDisk" else source)
            found += check(volume[source], place)
    if not chosen:
        found.append(required(path, "must specify a volume type"))
    if "iscsi" in volume:
        found += _check_iscsi_name(volume, path)
    if chosen == "ephemeral":
        found += _check_created_claim(volume, path, pod_name)
    return found


def _check_iscsi_name(volume: Tree, path: Path) -> Errors:
    """Check that an initiator can be named after the volume and its portal."""
    name, source = volume.get("name", ""), volume["iscsi"]
    whole = f"{name}:{source.get('targetPortal', '')}"
    if "initiatorName" not in source or names.byte_length(whole) <= _ISCSI_NAME_MAX:
        return []
    return [invalid(path.child("name"), name, _ISCSI_NAME)]


def _check_created_claim(volume: Tree, path: Path, pod_name: str) -> Errors:
    name = volume.get("name", "")
    if not pod_name or not name:
        return []
    claim = f"{pod_name}-{name}"
    messages = (f"PVC name {quoted(claim)}: {m}" for m in names.dns1123_subdomain(claim))
    return each_invalid(path.child("name"), name, messages)


# --- sources on the node, and of the API ----------------------------------------------------------


def _check_empty_dir(source: Tree, path: Path) -> Errors:
    limit = source.get("sizeLimit")
    if limit is None or Quantity.parse(limit).sign >= 0:
        return []
    detail = "SizeLimit field must be a valid resource quantity"
    return [forbidden(path.child("sizeLimit"), detail)]


def _check_host_path(source: Tree, path: Path) -> Errors:
    target = source.get("path", "")
    if not target:
        return [required(path.child("path"))]
    found = no_backsteps(target, path.child("path"))
    return found + choice(source.get("type"), _HOST_PATH_TYPES, path.child("type"))


def _check_git_repository(source: Tree, path: Path) -> Errors:
    found = given(source, ("repository",), path)
    return found + descending_path(source.get("directory", ""), path.child("directory"))


def _check_config_map(source: Tree, path: Path) -> Errors:
    return given(source, ("name",), path) + _check_files(source, path)


def _check_secret(source: Tree, path: Path) -> Errors:
    return given(source, ("secretName",), path) + _check_files(source, path)


def _check_files(source: Tree, path: Path) -> Errors:
    """Check which keys become which files."""
    found = file_mode(source.get("defaultMode"), path.child("defaultMode"))
    for position, item in enumerate(source.get("items", ())):
        found += check_key_to_path(item, path.child("items").index(position))
    return found


def check_key_to_path(item: Tree, path: Path) -> Errors:
    """Check which file a key becomes."""
    found = given(item, ("key", "path"), path)
    found += local_path(item.get("path", ""), path.child("path"))
    return found + file_mode(item.get("mode"), path.child("mode"))


def _check_downward(source: Tree, path: Path) -> Errors:
    found = file_mode(source.get("defaultMode"), path.child("defaultMode"))
    for file in source.get("items", ()):
        found += check_volume_file(file, path)
    return found


def _check_claim(source: Tree, path: Path) -> Errors:
    return given(source, ("claimName",), path)


def _check_ephemeral(source: Tree, path: Path) -> Errors:
    template = source.get("volumeClaimTemplate")
    place = path.child("volumeClaimTemplate")
    return [required(place)] if template is None else check_claim_template(template, place)


def _check_image(source: Tree, path: Path) -> Errors:
    found = given(source, ("reference",), path)
    return found + choice(source.get("pullPolicy"), PULL_POLICIES, path.child("pullPolicy"))


def _check_projected(source: Tree, path: Path) -> Errors:
    found = file_mode(source.get("defaultMode"), path.child("defaultMode"))
    return found + check_projected(source, path, check_key_to_path)


# In the order in which Kubernetes looks: only the first source that is given is checked.
_SOURCES: Mapping[str, Callable[[Tree, Path], Errors]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "gitRepo": _check_git_repository,
    "gcePersistentDisk": network.check_gce_disk,
    "awsElasticBlockStore": network.check_aws_disk,
    "secret": _check_secret,
    "nfs": network.check_nfs,
    "iscsi": network.check_iscsi,
    "glusterfs": network.check_glusterfs,
    "flocker": network.check_flocker,
    "persistentVolumeClaim": _check_claim,
    "rbd": network.check_rbd,
    "cinder": network.check_cinder,
    "cephfs": network.check_cephfs,
    "quobyte": network.check_quobyte,
    "downwardAPI": _check_downward,
    "fc": network.check_fibre_channel,
    "flexVolume": network.check_flex_volume,
    "configMap": _check_config_map,
    "azureFile": network.check_azure_file,
    "vsphereVolume": network.check_vsphere,
    "photonPersistentDisk": network.check_photon,
    "portworxVolume": network.check_portworx,
    "azureDisk": network.check_azure_disk,
    "storageos": network.check_storage_os,
    "projected": _check_projected,
    "scaleIO": network.check_scale_io,
    "csi": network.check_csi,
    "ephemeral": _check_ephemeral,
    "image": _check_image,
}
_MISNAMED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # as Kubernetes spells them
