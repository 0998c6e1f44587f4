"""Rules of projected volumes, and of volumes from the network or a cloud."""

from __future__ import annotations

import re
from collections.abc import Callable

from moorage.api import names
from moorage.api.codec import decode_tree
from moorage.api.field_path import Path
from moorage.api.meta import LabelSelector
from moorage.api.names import byte_length
from moorage.validation.errors import ErrorList, forbidden, invalid, not_supported, required
from moorage.validation.field_rules import driver_name, each_invalid, label
from moorage.validation.pod.field_rules import (
    Tree,
    in_range,
    local_path,
    object_name,
    one_of,
    require,
    validate_signer,
    validate_volume_file,
)
from moorage.validation.selectors import validate_label_selector

TOKEN_LIFETIME_S_MIN = 600
TOKEN_LIFETIME_S_MAX = 2**32
CERTIFICATE_LIFETIME_S_MIN = 3600
CERTIFICATE_LIFETIME_S_MAX = 91 * 24 * 3600
OWN_CERTIFICATE_LIFETIME_S_MAX = 24 * 3600
KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")

_TWICE = "conflicting duplicate paths"
_NO_PATH = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"

KeyCheck = Callable[[Tree, Path], ErrorList]


class _Paths:
    """The paths that the sources of one volume have used so far."""

    def __init__(self, volume: Path) -> None:
        self._volume = volume
        self._taken: set[str] = set()

    def take(self, path: str, shown: str) -> ErrorList:
        """Take a path; Kubernetes reports a duplicate at the volume."""
        if path in self._taken:
            return [invalid(self._volume, shown, _TWICE)]
        self._taken.add(path)
        return []


def validate_projected(volume: Tree, path: Path, validate_key: KeyCheck) -> ErrorList:
    """Validate all sources of a volume."""
    paths = _Paths(path)
    found: ErrorList = []
    for position, source in enumerate(volume.get("sources") or ()):
        place = path.child("sources").index(position)
        for name in ("secret", "configMap"):
            if name in source:
                found += _validate_object(source[name], place.child(name), paths, validate_key)
        if "downwardAPI" in source:
            found += _validate_downward(source["downwardAPI"], place.child("downwardAPI"), paths)
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            found += _validate_token(token, place.child("serviceAccountToken"), path)
        if "clusterTrustBundle" in source:
            bundle = source["clusterTrustBundle"]
            found += _validate_bundle(bundle, place.child("clusterTrustBundle"), paths)
        if "podCertificate" in source:
            certificate = source["podCertificate"]
            found += _validate_certificate(certificate, place.child("podCertificate"), paths)
        if len(source) > 1:
            found.append(forbidden(place, "may not specify more than 1 volume type per source"))
    return found


def _validate_object(source: Tree, path: Path, paths: _Paths, validate_key: KeyCheck) -> ErrorList:
    found = require(source, ("name",), path)
    for position, item in enumerate(source.get("items", ())):
        found += validate_key(item, path.child("items").index(position))
        if item.get("path"):
            found += paths.take(item["path"], source.get("name", ""))
    return found


def _validate_downward(source: Tree, path: Path, paths: _Paths) -> ErrorList:
    found: ErrorList = []
    for file in source.get("items", ()):
        found += validate_volume_file(file, path)
        if file.get("path"):
            found += paths.take(file["path"], file["path"])
    return found


def _validate_token(source: Tree, path: Path, volume: Path) -> ErrorList:
    """Validate a token; Kubernetes names its path as if it were one of the volume."""
    place = path.child("expirationSeconds")
    lifetime = source.get("expirationSeconds")
    found: ErrorList = []
    if lifetime is None:
        found.append(required(place))
    elif lifetime < TOKEN_LIFETIME_S_MIN:
        detail = "may not specify a duration less than 10 minutes"
        found.append(invalid(place, lifetime, detail))
    elif lifetime > TOKEN_LIFETIME_S_MAX:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.append(invalid(place, lifetime, detail))
    found += require(source, ("path",), volume)
    return found + local_path(source.get("path", ""), volume.child("path"))


# --- trust bundles ------------------------------------------------------------------------


def _validate_bundle(source: Tree, path: Path, paths: _Paths) -> ErrorList:
    name, signer, target = source.get("name"), source.get("signerName"), source.get("path", "")
    found: ErrorList = []
    if name is not None and signer is not None:
        found.append(invalid(path, source, "only one of name and signerName may be used"))
    elif name is not None:
        found += _validate_bundle_name(name, path.child("name"))
        if "labelSelector" in source:
            detail = "labelSelector must be unset if name is specified"
            found.append(invalid(path.child("labelSelector"), source["labelSelector"], detail))
    elif signer is not None:
        if not signer:
            found.append(required(path.child("signerName"), "must be a valid signer name"))
        found += validate_signer(signer, path.child("signerName"))
        if "labelSelector" in source:
            selector = decode_tree(source["labelSelector"], LabelSelector).value
            found += validate_label_selector(selector, path.child("labelSelector"))
    else:
        found.append(required(path, "either name or signerName must be specified"))
    found += require(source, ("path",), path)
    found += local_path(target, path.child("path"))
    return found + paths.take(target, target)


def _validate_bundle_name(name: str, path: Path) -> ErrorList:
    """Validate the name of a bundle, which begins with the signer's if it has one."""
    found = [] if name else [required(path, "must be a valid object name")]
    rest = name.rpartition(":")[2]
    messages = names.dns1123_subdomain(rest)
    return found + each_invalid(
        path, name, (f"not a valid clustertrustbundlename: {message}" for message in messages)
    )


# --- certificates -------------------------------------------------------------------------


def _validate_certificate(source: Tree, path: Path, paths: _Paths) -> ErrorList:
    signer = source.get("signerName", "")
    found = validate_signer(signer, path.child("signerName"))
    found += _validate_user_annotations(source.get("userAnnotations", {}), path)
    key_type = source.get("keyType", "")
    if key_type not in KEY_TYPES:
        found.append(not_supported(path.child("keyType"), key_type, KEY_TYPES))
    found += _validate_lifetime(source, signer, path.child("maxExpirationSeconds"))
    targets = ("credentialBundlePath", "keyPath", "certificateChainPath")
    for name in targets:
        if source.get(name):
            found += local_path(source[name], path.child(name))
            found += paths.take(source[name], source[name])
    if not any(source.get(name) for name in targets):
        found.append(required(path, _NO_PATH))
    return found


def _validate_user_annotations(annotations: Tree, path: Path) -> ErrorList:
    place = path.child("userAnnotations")
    found: ErrorList = []
    for key in annotations:
        written = key.lower()  # Kubernetes checks and shows keys in lower case.
        if not key:
            found.append(required(place))
        elif messages := names.label_name(written):
            found += each_invalid(place, written, messages)
        elif "/" not in key:
            detail = 'must be a domain-prefixed key (such as "acme.io/foo")'
            found.append(invalid(place, written, detail))
    return found


def _validate_lifetime(source: Tree, signer: str, path: Path) -> ErrorList:
    lifetime = source.get("maxExpirationSeconds")
    if lifetime is None:
        return []
    if lifetime < CERTIFICATE_LIFETIME_S_MIN:
        detail = f"if provided, maxExpirationSeconds must be >= {CERTIFICATE_LIFETIME_S_MIN}"
        return [invalid(path, lifetime, detail)]
    domain = signer.partition("/")[0]
    is_own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    longest = OWN_CERTIFICATE_LIFETIME_S_MAX if is_own else CERTIFICATE_LIFETIME_S_MAX
    if lifetime > longest:
        detail = f"if provided, maxExpirationSeconds must be <= {longest}"
        return [invalid(path, lifetime, detail)]
    return []


# --- volumes from the network or a cloud --------------------------------------------------

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


def validate_nfs(source: Tree, path: Path) -> ErrorList:
    """Validate an export of an NFS server."""
    found = require(source, ("server", "path"), path)
    target = source.get("path", "")
    if not target.startswith("/"):
        found.append(invalid(path.child("path"), target, "must be an absolute path"))
    return found


def validate_gce_disk(source: Tree, path: Path) -> ErrorList:
    """Validate a persistent disk of Google."""
    return require(source, ("pdName",), path) + _validate_partition(source, path)


def validate_aws_disk(source: Tree, path: Path) -> ErrorList:
    """Validate a block store of Amazon."""
    return require(source, ("volumeID",), path) + _validate_partition(source, path)


def _validate_partition(source: Tree, path: Path) -> ErrorList:
    partition = source.get("partition", 0)
    if 0 <= partition <= PARTITION_MAX:  # Kubernetes accepts 0, although its message says 1.
        return []
    detail = f"must be between 1 and {PARTITION_MAX}, inclusive"
    return [invalid(path.child("partition"), partition, detail)]


def validate_flocker(source: Tree, path: Path) -> ErrorList:
    """Validate a data set, which has a name or a UUID."""
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    found: ErrorList = []
    if not name and not uuid:
        found.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(invalid(path, "resource", detail))
    if "/" in name:
        found.append(invalid(path.child("datasetName"), name, "must not contain '/'"))
    return found


def validate_cinder(source: Tree, path: Path) -> ErrorList:
    """Validate a volume of OpenStack."""
    return require(source, ("volumeID",), path) + _validate_secret(source, path)


def _validate_secret(source: Tree, path: Path) -> ErrorList:
    """Validate that a secret that is referred to is named."""
    if "secretRef" not in source:
        return []
    return require(source["secretRef"], ("name",), path.child("secretRef"))


def validate_quobyte(source: Tree, path: Path) -> ErrorList:
    """Validate a volume of Quobyte."""
    registry, tenant = source.get("registry", ""), source.get("tenant", "")
    found: ErrorList = []
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
    return found + require(source, ("volume",), path)


def _is_host_and_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    if host.startswith("["):
        return bool(colon) and host.endswith("]") and "]" not in port
    return bool(colon) and not set(host + port) & set(":[]")


def validate_fibre_channel(source: Tree, path: Path) -> ErrorList:
    """Validate a target of Fibre Channel: world wide names with a unit, or identifiers."""
    targets, identifiers = source.get("targetWWNs"), source.get("wwids")
    place = path.child("targetWWNs")
    found: ErrorList = []
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


def validate_flex_volume(source: Tree, path: Path) -> ErrorList:
    """Validate a volume of a driver of its own, whose options are not Kubernetes'."""
    found = require(source, ("driver",), path)
    for key in source.get("options", ()):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            found.append(invalid(path.child("options").key(key), key, _RESERVED))
    return found


def validate_azure_disk(source: Tree, path: Path) -> ErrorList:
    """Validate a disk of Azure, whose URI depends on its kind."""
    found = require(source, ("diskName", "diskURI"), path)
    modes, kinds = ("None", "ReadOnly", "ReadWrite"), ("Dedicated", "Managed", "Shared")
    found += one_of(source.get("cachingMode"), modes, path.child("cachingMode"))
    kind, uri = source.get("kind"), source.get("diskURI", "")
    found += one_of(kind, kinds, path.child("kind"))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        found.append(not_supported(path.child("diskURI"), uri, (_MANAGED_URI,)))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        found.append(not_supported(path.child("diskURI"), uri, (_BLOB_URI,)))
    return found


def validate_storage_os(source: Tree, path: Path) -> ErrorList:
    """Validate a volume of StorageOS."""
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    place = path.child("volumeName")
    found = label(name, place) if name else [required(place)]
    if namespace:
        found += label(namespace, path.child("volumeNamespace"))
    return found + _validate_secret(source, path)


def validate_csi(source: Tree, path: Path) -> ErrorList:
    """Validate a volume of a CSI driver."""
    found = driver_name(source.get("driver", ""), path.child("driver"))
    if "nodePublishSecretRef" not in source:
        return found
    name = source["nodePublishSecretRef"].get("name", "")
    if not name:
        return [*found, required(path.child("nodePublishSecretRef", "name"))]
    return found + object_name(name, path.child("name"))


# --- iSCSI --------------------------------------------------------------------------------


def validate_iscsi(source: Tree, path: Path) -> ErrorList:
    """Validate a target of iSCSI."""
    found = require(source, ("targetPortal", "iqn"), path)
    if source.get("iqn"):
        found += _validate_qualified(source["iqn"], path.child("iqn"))
    found += in_range(source.get("lun", 0), 0, LUN_MAX, path.child("lun"))
    authenticates = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticates and "secretRef" not in source:
        found.append(required(path.child("secretRef")))
    if "initiatorName" in source:
        found += _validate_qualified(source["initiatorName"], path.child("initiatorname"))
    return found


def _validate_qualified(name: str, path: Path) -> ErrorList:
    """Validate the qualified name of a target or an initiator."""
    matches = _FORMATS.get(name[:3])
    if matches is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if matches(name) else [invalid(path, name, "must be valid format")]
