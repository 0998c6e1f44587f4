"""Defaults of the types in a pod that our structs keep as JSON: volumes, probes, variables.

One table has the fields that each type gets where nothing is given, another those that it loses:
fields of features that Kubernetes 1.37 has off, and that Mooring does not have. `filled` applies
both to a tree and to everything in it; the types of its fields are those of the protobuf table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from mooring.api.typed_json import message_named

Tree = dict[str, Any]

READABLE = 0o644  # what files of volumes are, if nothing else is said
TOKEN_LIFETIME_S = 3600
REPOSITORY_MAX = 255
LIBRARY = "library/"  # where images without a folder are

_DEFAULTS: Mapping[str, Tree] = {
    "core/v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "core/v1.ConfigMapVolumeSource": {"defaultMode": READABLE},
    "core/v1.DownwardAPIVolumeSource": {"defaultMode": READABLE},
    "core/v1.FileKeySelector": {"optional": False},
    "core/v1.GRPCAction": {"service": ""},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.HostPathVolumeSource": {"type": ""},
    "core/v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1.Probe": {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
    "core/v1.ProjectedVolumeSource": {"defaultMode": READABLE},
    "core/v1.RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "core/v1.ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "core/v1.SecretVolumeSource": {"defaultMode": READABLE},
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": TOKEN_LIFETIME_S},
}

_OFF: Mapping[str, tuple[str, ...]] = {
    # AtomicWriteVolumeUserFields
    "core/v1.ClusterTrustBundleProjection": ("user",),
    "core/v1.ConfigMapVolumeSource": ("defaultUser",),
    "core/v1.DownwardAPIVolumeFile": ("user",),
    "core/v1.DownwardAPIVolumeSource": ("defaultUser",),
    "core/v1.KeyToPath": ("user",),
    "core/v1.PodCertificateProjection": ("user",),
    "core/v1.ProjectedVolumeSource": ("defaultUser",),
    "core/v1.SecretVolumeSource": ("defaultUser",),
    "core/v1.ServiceAccountTokenProjection": ("user",),
    "core/v1.EmptyDirVolumeSource": ("mode",),  # EmptyDirVolumeMode
    "core/v1.GRPCAction": ("mode",),  # GRPCContainerProbeTLS
    "core/v1.HTTPGetAction": ("protocol",),  # H2CContainerProbe
    "core/v1.Lifecycle": ("stopSignal",),  # ContainerStopSignals
}


def filled_each(trees: tuple[Any, ...], message: str) -> tuple[Any, ...]:
    """Return a list of trees of one type with their defaults."""
    return tuple(filled(tree, message) for tree in trees) if trees else trees


def filled(tree: Any, message: str) -> Any:
    """Return a tree with the defaults of its type, and of the types of all that is in it."""
    if not isinstance(tree, dict):
        return tree
    below, off = _fields_with_defaults(message), _OFF.get(message, ())
    found = {
        name: _filled_field(value, below[name]) if name in below else value
        for name, value in tree.items()
        if name not in off
    }
    found = {**_DEFAULTS.get(message, {}), **found}
    computed = _COMPUTED.get(message)
    return computed(found) if computed is not None else found


def _filled_field(value: Any, message: str) -> Any:
    if isinstance(value, list):
        return [filled(item, message) for item in value]
    return filled(value, message)


@lru_cache(maxsize=1024)
def _fields_with_defaults(message: str) -> dict[str, str]:
    """Return the fields of a type in which something has defaults, with their types."""
    fields = message_named(message).fields.items()
    return {name: f.type for name, f in fields if "." in f.type and _has_defaults(f.type)}


@lru_cache(maxsize=1024)
def _has_defaults(message: str) -> bool:
    tables: tuple[Mapping[str, Any], ...] = (_DEFAULTS, _OFF, _COMPUTED)
    return any(message in table for table in tables) or bool(_fields_with_defaults(message))


# --- defaults that depend on something ------------------------------------------------------------


def _default_volume(volume: Tree) -> Tree:
    """Return a volume that is an empty folder if it is nothing else."""
    return volume if volume.keys() - {"name"} else {**volume, "emptyDir": {}}


def _default_image(image: Tree) -> Tree:
    reference = image.get("reference", "")
    if image.get("pullPolicy") or not isinstance(reference, str):
        return image
    return {**image, "pullPolicy": pull_policy(reference)}


def _default_claim(claim: Tree) -> Tree:
    """Return a claim as Kubernetes shows those of stateful sets: named, and waiting."""
    status = claim.get("status") or {}
    if isinstance(status, dict):
        status = {"phase": "Pending", **status}
    return {**claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1", "status": status}


_COMPUTED: Mapping[str, Callable[[Tree], Tree]] = {
    "core/v1.ImageVolumeSource": _default_image,
    "core/v1.PersistentVolumeClaim": _default_claim,
    "core/v1.Volume": _default_volume,
}

_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_match_image = re.compile(
    r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?"
    rf"({_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::([a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}))?(?:@([a-zA-Z0-9+._-]+:[0-9a-fA-F]{32,}))?"
).fullmatch


def pull_policy(image: str) -> str:
    """Return Always for the tag latest, which an image without tag and digest has as well."""
    reference = _match_image(image)
    if reference is None:
        return "IfNotPresent"
    repository, tag, digest = reference.groups()
    if len(repository if "/" in image else f"{LIBRARY}{repository}") > REPOSITORY_MAX:
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
