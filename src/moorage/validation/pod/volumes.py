"""Rules of the volumes of a pod: each has a unique name, a DNS label, and one source.

The name of a volume becomes a folder on the node, so the rule for names is also one of safety.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.api import names
from moorage.api.codec import decode_tree
from moorage.api.field_path import Path
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.quantity import Quantity
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import each, each_invalid, label, validate_labels
from moorage.validation.metadata import validate_annotations
from moorage.validation.pod import volume_sources as network
from moorage.validation.pod.field_rules import (
    Tree,
    descending_path,
    file_mode,
    local_path,
    no_backsteps,
    one_of,
    require,
    validate_volume_file,
)
from moorage.validation.pod.volume_sources import validate_projected
from moorage.validation.selectors import validate_label_selector

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

SourceCheck = Callable[[Tree, Path], ErrorList]
Volumes = Mapping[str, Tree]  # the valid ones, by name


def validate_volumes(
    volumes: tuple[Any, ...], metadata: ObjectMeta | None, path: Path
) -> tuple[ErrorList, Volumes]:
    """Validate volumes; also return the valid ones. A template has no metadata."""
    pod_name = "" if metadata is None else metadata.name
    created = _created_claims(volumes, pod_name)
    found: ErrorList = []
    good: dict[str, Tree] = {}
    for position, volume in enumerate(volumes):
        place = path.index(position)
        faults = _validate_source(volume, place, pod_name) + _validate_name(volume, place, good)
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
    """Return the names of the claims that are created for a pod's ephemeral volumes."""
    if not pod_name:
        return set()
    return {f"{pod_name}-{v.get('name', '')}" for v in volumes if "ephemeral" in v}


def _validate_name(volume: Tree, path: Path, taken: Volumes) -> ErrorList:
    name, place = volume.get("name", ""), path.child("name")
    found = label(name, place) if name else [required(place)]
    if name in taken:
        found.append(duplicate(place, name))
    return found


def _validate_source(volume: Tree, path: Path, pod_name: str) -> ErrorList:
    found: ErrorList = []
    chosen = ""
    for source, check in _SOURCES.items():
        if source not in volume:
            continue
        if chosen:
            place = path.child(_MISNAMED.get(source, source))
            found.append(forbidden(place, "may not specify more than 1 volume type"))
        else:
            chosen = source
            # Kubernetes reports this one by an old name.
            place = path.child("persistentDisk" if source == "gcePersistentDisk" else source)
            found += check(volume[source], place)
    if not chosen:
        found.append(required(path, "must specify a volume type"))
    if "iscsi" in volume:
        found += _validate_iscsi_name(volume, path)
    if chosen == "ephemeral":
        found += _validate_created_claim(volume, path, pod_name)
    return found


def _validate_iscsi_name(volume: Tree, path: Path) -> ErrorList:
    """Validate that an initiator can be named after the volume and its portal."""
    name, source = volume.get("name", ""), volume["iscsi"]
    whole = f"{name}:{source.get('targetPortal', '')}"
    if "initiatorName" not in source or names.byte_length(whole) <= _ISCSI_NAME_MAX:
        return []
    return [invalid(path.child("name"), name, _ISCSI_NAME)]


def _validate_created_claim(volume: Tree, path: Path, pod_name: str) -> ErrorList:
    name = volume.get("name", "")
    if not pod_name or not name:
        return []
    claim = f"{pod_name}-{name}"
    messages = (f"PVC name {go_quote(claim)}: {m}" for m in names.dns1123_subdomain(claim))
    return each_invalid(path.child("name"), name, messages)


# --- sources on the node, and of the API --------------------------------------------------


def _validate_empty_dir(source: Tree, path: Path) -> ErrorList:
    limit = source.get("sizeLimit")
    if limit is None or Quantity.parse(limit).sign >= 0:
        return []
    detail = "SizeLimit field must be a valid resource quantity"
    return [forbidden(path.child("sizeLimit"), detail)]


def validate_host_path(source: Tree, path: Path) -> ErrorList:
    """Validate a path of the node, and what must be there."""
    target = source.get("path", "")
    if not target:
        return [required(path.child("path"))]
    found = no_backsteps(target, path.child("path"))
    return found + one_of(source.get("type"), _HOST_PATH_TYPES, path.child("type"))


def _validate_git_repository(source: Tree, path: Path) -> ErrorList:
    found = require(source, ("repository",), path)
    return found + descending_path(source.get("directory", ""), path.child("directory"))


def _validate_config_map(source: Tree, path: Path) -> ErrorList:
    return require(source, ("name",), path) + _validate_files(source, path)


def _validate_secret(source: Tree, path: Path) -> ErrorList:
    return require(source, ("secretName",), path) + _validate_files(source, path)


def _validate_files(source: Tree, path: Path) -> ErrorList:
    """Validate the items of a ConfigMap or Secret volume."""
    found = file_mode(source.get("defaultMode"), path.child("defaultMode"))
    return found + each(source.get("items", ()), validate_key_to_path, path.child("items"))


def validate_key_to_path(item: Tree, path: Path) -> ErrorList:
    """Validate the path of a key."""
    found = require(item, ("key", "path"), path)
    found += local_path(item.get("path", ""), path.child("path"))
    return found + file_mode(item.get("mode"), path.child("mode"))


def _validate_downward(source: Tree, path: Path) -> ErrorList:
    found = file_mode(source.get("defaultMode"), path.child("defaultMode"))
    for file in source.get("items", ()):
        found += validate_volume_file(file, path)
    return found


def _validate_ephemeral(source: Tree, path: Path) -> ErrorList:
    template = source.get("volumeClaimTemplate")
    place = path.child("volumeClaimTemplate")
    return [required(place)] if template is None else validate_claim_template(template, place)


def _validate_image(source: Tree, path: Path) -> ErrorList:
    found = require(source, ("reference",), path)
    return found + one_of(source.get("pullPolicy"), PULL_POLICIES, path.child("pullPolicy"))


def _validate_projected(source: Tree, path: Path) -> ErrorList:
    found = file_mode(source.get("defaultMode"), path.child("defaultMode"))
    return found + validate_projected(source, path, validate_key_to_path)


def _with(*fields: str) -> SourceCheck:
    """Return the rule of a source of which only some fields are required."""
    return lambda source, path: require(source, fields, path)


# In the order of Kubernetes: only the first source that is set is validated.
_SOURCES: Mapping[str, SourceCheck] = {
    "emptyDir": _validate_empty_dir,
    "hostPath": validate_host_path,
    "gitRepo": _validate_git_repository,
    "gcePersistentDisk": network.validate_gce_disk,
    "awsElasticBlockStore": network.validate_aws_disk,
    "secret": _validate_secret,
    "nfs": network.validate_nfs,
    "iscsi": network.validate_iscsi,
    "glusterfs": _with("endpoints", "path"),
    "flocker": network.validate_flocker,
    "persistentVolumeClaim": _with("claimName"),
    "rbd": _with("monitors", "image"),
    "cinder": network.validate_cinder,
    "cephfs": _with("monitors"),
    "quobyte": network.validate_quobyte,
    "downwardAPI": _validate_downward,
    "fc": network.validate_fibre_channel,
    "flexVolume": network.validate_flex_volume,
    "configMap": _validate_config_map,
    "azureFile": _with("secretName", "shareName"),
    "vsphereVolume": _with("volumePath"),
    "photonPersistentDisk": _with("pdID"),
    "portworxVolume": _with("volumeID"),
    "azureDisk": network.validate_azure_disk,
    "storageos": network.validate_storage_os,
    "projected": _validate_projected,
    "scaleIO": _with("gateway", "system", "volumeName"),
    "csi": network.validate_csi,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}
_MISNAMED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # as Kubernetes spells them


# --- persistent volume claims -------------------------------------------------------------

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
CLAIM = "PersistentVolumeClaim"

_ALONE = "ReadWriteOncePod"


def validate_claim_template(template: Tree, path: Path) -> ErrorList:
    """Validate a claim template, whose metadata may have labels and annotations only."""
    metadata, place = template.get("metadata", {}), path.child("metadata")
    found = validate_annotations(metadata.get("annotations", {}), place.child("annotations"))
    found += validate_labels(metadata.get("labels", {}), place.child("labels"))
    for name in metadata:
        if name not in ("annotations", "labels"):
            found.append(forbidden(place.child(name), "cannot be set"))
    return found + validate_claim_spec(template.get("spec", {}), path.child("spec"))


def validate_claim_spec(spec: Tree, path: Path) -> ErrorList:
    """Validate the spec of a persistent volume claim."""
    found = _validate_access_modes(spec.get("accessModes", ()), path.child("accessModes"))
    if "selector" in spec:
        selector = decode_tree(spec["selector"], LabelSelector).value
        found += validate_label_selector(selector, path.child("selector"))
    requests = spec.get("resources", {}).get("requests", {})
    found += _validate_storage(requests.get("storage"), path.child("resources").key("storage"))
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            found += each_invalid(path.child(name), spec[name], names.dns1123_subdomain(spec[name]))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        found.append(not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    return found + _validate_data_sources(spec, path)


def _validate_access_modes(modes: Any, path: Path) -> ErrorList:
    if not modes:
        return [required(path, "at least 1 access mode is required")]
    found: ErrorList = [
        not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES
    ]
    if _ALONE in modes and any(mode in ACCESS_MODES and mode != _ALONE for mode in modes):
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _validate_storage(amount: str | None, path: Path) -> ErrorList:
    if amount is None:
        return [required(path)]
    quantity = Quantity.parse(amount)
    if quantity.sign <= 0:
        return [invalid(path, str(quantity), "must be greater than zero")]
    return []


def _validate_data_sources(spec: Tree, path: Path) -> ErrorList:
    """Validate dataSource and dataSourceRef, which must agree if both are set."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: ErrorList = []
    if source is not None:
        found += _validate_data_source(source, path.child("dataSource"))
    if reference is not None:
        found += _validate_data_source(reference, path.child("dataSourceRef"))
    if source is None or reference is None:
        return found
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        found.append(invalid(path, {}, detail))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        found.append(invalid(path, {}, "must match dataSourceRef"))
    return found


def _validate_data_source(source: Tree, path: Path) -> ErrorList:
    found: ErrorList = [required(path.child(n)) for n in ("name", "kind") if not source.get(n)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != CLAIM:
        detail = f"must be '{CLAIM}' when referencing the default apiGroup"
        found.append(invalid(path, kind, detail))
    if group:
        found += each_invalid(path.child("apiGroup"), group, names.dns1123_subdomain(group))
    namespace = source.get("namespace")
    if namespace:
        place = path.child("namespace")
        found += each_invalid(place, namespace, names.dns1123_label(namespace))
    return found
