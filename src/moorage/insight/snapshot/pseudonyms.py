"""Other names for everything in a cluster, the same wherever a name occurs.

Nodes and pools become site-1, site-2 …, namespaces space-1 …, and so on, numbered in the order of
the names, so that ties by name are decided as before. Pods keep what follows the name of their
controller, because controllers know their pods by it.

Labels, taints, attributes, CEL, and the names of drivers, classes, devices, requests and images are
kept: they decide, and other objects quote parts of them. Labels and selectors that by Kubernetes'
own rules hold the name of a node or namespace change with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.insight.snapshot.snapshot import Snapshot, is_new, stand_in_uid
from moorage.insight.snapshot.unread import Unread

KEPT_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")

_SITE_LABEL = "kubernetes.io/hostname"
_SPACE_LABEL = "kubernetes.io/metadata.name"

# kind: prefix of its pseudonyms; other kinds keep their names.
_CALLED: Final = {
    "Node": "site",
    "Namespace": "space",
    "ResourceQuota": "quota",
    "ResourceSlice": "slice",
    "DeviceTaintRule": "rule",
    "ResourceClaimTemplate": "template",
    "ResourceClaim": "claim",
    "PersistentVolume": "volume",
    "PersistentVolumeClaim": "volume-claim",
    "Workload": "workload",
    "PodGroup": "group",
    "CompositePodGroup": "group",
    "Service": "service",
    "ReplicationController": "controller",
    "Deployment": "controller",
    "DaemonSet": "controller",
    "ReplicaSet": "controller",
    "StatefulSet": "controller",
    "Job": "controller",
    "Pod": "pod",
}

# field: prefix of the pseudonyms in it
_FIELDS: Final = {
    "namespace": "space",
    "nodeName": "site",
    "nominatedNodeName": "site",
    "pool": "site",
    "resourceClaimName": "claim",
    "claimName": "volume-claim",
    "volumeName": "volume",
    "resourceClaimTemplateName": "template",
    "podGroupName": "group",
    "parentCompositePodGroupName": "group",
    "workloadName": "workload",
}
_SELECTED: Final = {"metadata.name": "site", _SITE_LABEL: "site", _SPACE_LABEL: "space"}
# Maps with free keys.
_LABEL_MAPS: Final = ("labels", "matchLabels", "nodeSelector")
_KEPT_MAPS: Final = (
    *("annotations", "attributes", "capacity", "counters", "parameters"),
    *("allocatable", "consumedCapacity", "hard", "limits", "overhead", "requests", "used"),
)
_CONSUMERS: Final = {"pods": "pod", "podgroups": "group"}

# (prefix, name) -> the name to write
Rename = Callable[[str, str], str]


def anonymised(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with pseudonyms."""
    trees = [to_tree(each) for each in snapshot.objects()]
    found: dict[str, set[str]] = {}

    def note(called: str, name: str) -> str:
        found.setdefault(called, set()).add(name)
        return name

    for tree in trees:
        _renamed(tree, note)
    for each in snapshot.unread.kinds:
        found.setdefault("space", set()).update(each.namespaces)
    names = _Names(found)
    objects = []
    uids: dict[str, str] = {}
    for old, tree in zip(snapshot.objects(), trees, strict=True):
        new = decode_tree(_renamed(tree, names.rename), type(old)).value
        if is_new(old):
            metadata = new.metadata
            uids[metadata.uid] = stand_in_uid(new.kind, metadata.namespace, metadata.name)
        objects.append(new)
    return Snapshot.of(
        (_with_uids(each, uids) for each in objects), _renamed_unread(snapshot.unread, names)
    )


def _renamed_unread(unread: Unread, names: _Names) -> Unread:
    """Return what could not be read, with the pseudonyms of the namespaces where it was."""
    return Unread(
        tuple(
            replace(each, namespaces=tuple(names.rename("space", name) for name in each.namespaces))
            for each in unread.kinds
        )
    )


class _Names:
    """The new name of every name, numbered in their order."""

    def __init__(self, found: dict[str, set[str]]) -> None:
        controllers = found.get("controller", set())
        self._controllers = _numbered("controller", _without_children(controllers))
        self._names = {
            called: _numbered(called, names)
            for called, names in found.items()
            if called != "controller"
        }

    def rename(self, called: str, name: str) -> str:
        """Return the new name."""
        if called == "space" and name in KEPT_NAMESPACES:
            return name
        if called in ("controller", "pod") and (child := self._of_controller(name)):
            return child
        return self._names[called][name]

    def _of_controller(self, name: str) -> str | None:
        """Return the new name of a controller, or of an object named after one."""
        own = name
        while own:
            if own in self._controllers:
                return self._controllers[own] + name[len(own) :]
            own = own.rpartition("-")[0]
        return None


def _without_children(names: set[str]) -> set[str]:
    """Return the names that do not begin with another one, as a ReplicaSet's does."""
    return {name for name in names if not any(base in names for base in _bases(name))}


def _bases(name: str) -> Iterable[str]:
    while name := name.rpartition("-")[0]:
        yield name


def _numbered(called: str, names: set[str]) -> dict[str, str]:
    digits = len(str(len(names)))
    return {name: f"{called}-{i:0{digits}}" for i, name in enumerate(sorted(names), start=1)}


def _renamed(tree: Any, rename: Rename) -> Any:
    """Return the tree of an object with its own name and all names in it renamed."""
    tree = _walk(tree, rename)
    metadata = tree["metadata"]
    metadata.pop("generateName", None)
    if called := _CALLED.get(tree["kind"]):
        metadata["name"] = rename(called, metadata["name"])
    if tree["kind"] == "ResourceSlice" and "pool" in tree["spec"]:
        pool = tree["spec"]["pool"]
        pool["name"] = rename("site", pool["name"])
    return tree


def _walk(tree: Any, rename: Rename) -> Any:
    match tree:
        case {"uid": _, "kind": str(kind), "name": str(name)}:  # an owner
            return {**tree, "name": rename(_CALLED.get(kind, "owner"), name)}
        case {"uid": _, "resource": str(resource), "name": str(name)}:  # a consumer
            called = _CONSUMERS.get(resource)
            return {**tree, "name": rename(called, name) if called else name}
        case {"key": str(key), "values": list(values)} if key in _SELECTED:
            return {**tree, "values": [rename(_SELECTED[key], each) for each in values]}
        case dict():
            return {key: _member(key, value, rename) for key, value in tree.items()}
        case list():
            return [_walk(each, rename) for each in tree]
    return tree


def _member(key: str, value: Any, rename: Rename) -> Any:
    if isinstance(value, str) and value and key in _FIELDS:
        return rename(_FIELDS[key], value)
    if key == "namespaces" and isinstance(value, list):
        return [rename("space", each) if isinstance(each, str) else each for each in value]
    if key == "claimRef" and isinstance(value, dict):
        called = {"namespace": "space", "name": "volume-claim"}
        new = {field: rename(to, value[field]) for field, to in called.items() if value.get(field)}
        return {**value, **new}
    if key in _KEPT_MAPS and isinstance(value, dict):
        return value
    if _is_label_map(key, value):
        return {
            name: (rename(_SELECTED[name], text) if name in _SELECTED and text else text)
            for name, text in value.items()
        }
    return _walk(value, rename)


def _is_label_map(key: str, value: Any) -> bool:
    if not isinstance(value, dict) or "nodeSelectorTerms" in value:
        return False
    # A Service's selector is labels; a ReplicaSet's has them one level below.
    is_plain = key == "selector" and all(isinstance(each, str) for each in value.values())
    return key in _LABEL_MAPS or is_plain


def _with_uids(value: Any, uids: dict[str, str]) -> Any:
    """Return the object with the uids that follow from the new names."""
    if not uids:
        return value
    tree = _with_new_uids(to_tree(value), uids)
    return decode_tree(tree, type(value)).value


def _with_new_uids(tree: Any, uids: dict[str, str]) -> Any:
    match tree:
        case dict():
            return {
                key: uids.get(value, value)
                if isinstance(value, str) and key.endswith("uid")
                else _with_new_uids(value, uids)
                for key, value in tree.items()
            }
        case list():
            return [_with_new_uids(each, uids) for each in tree]
    return tree
