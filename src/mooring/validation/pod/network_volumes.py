"""Rules for volumes that come over a network or from a cloud."""

from __future__ import annotations

import re

from mooring.api.fieldpath import Path
from mooring.api.names import byte_length
from mooring.validation.checks import driver_name, label
from mooring.validation.errors import Errors, invalid, not_supported, required
from mooring.validation.pod.field_rules import Tree, choice, given, in_range, object_name

LUN_MAX = 255
PARTITION_MAX = 255
TENANT_MAX_BYTES = 64

_FORMATS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII).search,
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch,
}
_PAIRS = "must be a host:port pair or multiple pairs separated by commas"
_MANAGED_URI = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}"
)
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_RESERVED = "kubernetes.io and k8s.io namespaces are reserved"


def check_nfs(source: Tree, path: Path) -> Errors:
    """Check an export of an NFS server."""
    found = given(source, ("server", "path"), path)
    target = source.get("path", "")
    if not target.startswith("/"):
        found.append(invalid(path.child("path"), target, "must be an absolute path"))
    return found


def check_gce_disk(source: Tree, path: Path) -> Errors:
    """Check a persistent disk of Google."""
    return given(source, ("pdName",), path) + _check_partition(source, path)


def check_aws_disk(source: Tree, path: Path) -> Errors:
    """Check a block store of Amazon."""
    return given(source, ("volumeID",), path) + _check_partition(source, path)


def _check_partition(source: Tree, path: Path) -> Errors:
    partition = source.get("partition", 0)
    if 0 <= partition <= PARTITION_MAX:  # Kubernetes accepts zero, and says one.
        return []
    detail = f"must be between 1 and {PARTITION_MAX}, inclusive"
    return [invalid(path.child("partition"), partition, detail)]


def check_glusterfs(source: Tree, path: Path) -> Errors:
    """Check a volume of Gluster."""
    return given(source, ("endpoints", "path"), path)


def check_flocker(source: Tree, path: Path) -> Errors:
    """Check a data set, which has a name or a UUID."""
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    found: Errors = []
    if not name and not uuid:
        found.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(invalid(path, "resource", detail))
    if "/" in name:
        found.append(invalid(path.child("datasetName"), name, "must not contain '/'"))
    return found


def check_rbd(source: Tree, path: Path) -> Errors:
    """Check a block device of Ceph."""
    return given(source, ("monitors", "image"), path)


def check_cephfs(source: Tree, path: Path) -> Errors:
    """Check a file system of Ceph."""
    return given(source, ("monitors",), path)


def check_cinder(source: Tree, path: Path) -> Errors:
    """Check a volume of OpenStack."""
    return given(source, ("volumeID",), path) + _check_secret(source, path)


def _check_secret(source: Tree, path: Path) -> Errors:
    """Check that a secret that is referred to is named."""
    if "secretRef" not in source:
        return []
    return given(source["secretRef"], ("name",), path.child("secretRef"))


def check_quobyte(source: Tree, path: Path) -> Errors:
    """Check a volume of Quobyte."""
    registry, tenant = source.get("registry", ""), source.get("tenant", "")
    found: Errors = []
    if not registry:
        found.append(required(path.child("registry"), _PAIRS))
    elif byte_length(tenant) > TENANT_MAX_BYTES:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        found.append(required(path.child("tenant"), detail))
    else:
        pairs = registry.split(",")
        found += [
            invalid(path.child("registry"), registry, _PAIRS)
            for pair in pairs
            if not _is_host_and_port(pair)
        ]
    return found + given(source, ("volume",), path)


def _is_host_and_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    if host.startswith("["):
        return bool(colon) and host.endswith("]") and "]" not in port
    return bool(colon) and not set(host + port) & set(":[]")


def check_fibre_channel(source: Tree, path: Path) -> Errors:
    """Check a target of Fibre Channel: world wide names with a unit, or identifiers."""
    targets, identifiers = source.get("targetWWNs"), source.get("wwids")
    place = path.child("targetWWNs")
    found: Errors = []
    if not targets and not identifiers:
        detail = "must specify either targetWWNs or wwids, but not both"
        found.append(required(place, detail))
    if targets and identifiers:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        found.append(invalid(place, targets, detail))
    if targets:
        unit = source.get("lun")
        if unit is None:
            detail = "lun is required if targetWWNs is specified"
            found.append(required(path.child("lun"), detail))
        else:
            found += in_range(unit, 0, LUN_MAX, path.child("lun"))
    return found


def check_flex_volume(source: Tree, path: Path) -> Errors:
    """Check a volume of a driver of its own, whose options are not Kubernetes'."""
    found = given(source, ("driver",), path)
    for key in source.get("options", ()):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            found.append(invalid(path.child("options").key(key), key, _RESERVED))
    return found


def check_azure_file(source: Tree, path: Path) -> Errors:
    """Check a share of Azure."""
    return given(source, ("secretName", "shareName"), path)


def check_azure_disk(source: Tree, path: Path) -> Errors:
    """Check a disk of Azure, whose URI depends on its kind."""
    found = given(source, ("diskName", "diskURI"), path)
    modes, kinds = ("None", "ReadOnly", "ReadWrite"), ("Dedicated", "Managed", "Shared")
    found += choice(source.get("cachingMode"), modes, path.child("cachingMode"))
    kind, uri = source.get("kind"), source.get("diskURI", "")
    found += choice(kind, kinds, path.child("kind"))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        found.append(not_supported(path.child("diskURI"), uri, (_MANAGED_URI,)))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        found.append(not_supported(path.child("diskURI"), uri, (_BLOB_URI,)))
    return found


def check_vsphere(source: Tree, path: Path) -> Errors:
    """Check a virtual disk of vSphere."""
    return given(source, ("volumePath",), path)


def check_photon(source: Tree, path: Path) -> Errors:
    """Check a disk of Photon."""
    return given(source, ("pdID",), path)


def check_portworx(source: Tree, path: Path) -> Errors:
    """Check a volume of Portworx."""
    return given(source, ("volumeID",), path)


def check_scale_io(source: Tree, path: Path) -> Errors:
    """Check a volume of ScaleIO."""
    return given(source, ("gateway", "system", "volumeName"), path)


def check_storage_os(source: Tree, path: Path) -> Errors:
    """Check a volume of StorageOS."""
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    place = path.child("volumeName")
    found = label(name, place) if name else [required(place)]
    if namespace:
        found += label(namespace, path.child("volumeNamespace"))
    return found + _check_secret(source, path)


def check_csi(source: Tree, path: Path) -> Errors:
    """Check a volume of a CSI driver."""
    found = driver_name(source.get("driver", ""), path.child("driver"))
    if "nodePublishSecretRef" not in source:
        return found
    name = source["nodePublishSecretRef"].get("name", "")
    if not name:
        return [*found, required(path.child("nodePublishSecretRef", "name"))]
    return found + object_name(name, path.child("name"))


# --- iSCSI ----------------------------------------------------------------------------------------


def check_iscsi(source: Tree, path: Path) -> Errors:
    """Check a target of iSCSI."""
    found = given(source, ("targetPortal", "iqn"), path)
    if source.get("iqn"):
        found += _check_qualified(source["iqn"], path.child("iqn"))
    found += in_range(source.get("lun", 0), 0, LUN_MAX, path.child("lun"))
    authenticates = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticates and "secretRef" not in source:
        found.append(required(path.child("secretRef")))
    if "initiatorName" in source:
        found += _check_qualified(source["initiatorName"], path.child("initiatorname"))
    return found


def _check_qualified(name: str, path: Path) -> Errors:
    """Check the qualified name of a target or an initiator."""
    matches = _FORMATS.get(name[:3])
    if matches is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if matches(name) else [invalid(path, name, "must be valid format")]
