"""Objects and managers for the tests of patches."""

from __future__ import annotations

from typing import Any

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.api.kinds import Kind
from moorage.apiserver.patching import FieldManager, PatchError

POD = CATALOGUE.find("v1", "Pod")
NODE = CATALOGUE.find("v1", "Node")
CLAIM = CATALOGUE.find("resource.k8s.io/v1", "ResourceClaim")
OLD_CLAIM = CATALOGUE.find("resource.k8s.io/v1beta1", "ResourceClaim")

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:10Z"


def pod(metadata: Any = None, **spec: Any) -> Any:
    """Return a pod as a client writes it."""
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **(metadata or {})}}
    return {**tree, "spec": spec} if spec else tree


def claim(*requests: Any, metadata: Any = None, api_version: str = "resource.k8s.io/v1") -> Any:
    """Return a claim as a client writes it."""
    return {
        "apiVersion": api_version,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", **(metadata or {})},
        "spec": {"devices": {"requests": list(requests)}},
    }


def written(tree: Any) -> Any:
    """Return an object as the server writes it, stored."""
    kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
    result = to_tree(decode_tree(tree, kind.struct).value)
    result["metadata"]["uid"] = "1"
    return result


def apply(
    live: Any,
    applied: Any,
    manager: str = "a",
    *,
    kind: Kind = POD,
    force: bool = False,
    now: str = NOW,
    subresource: str = "",
) -> Any:
    """Return what an apply leads to, stored; it must not be refused."""
    result = FieldManager(kind, subresource).apply(
        live, applied, manager=manager, force=force, now=now
    )
    assert not isinstance(result, PatchError), result
    return written(result)


def update(
    live: Any,
    new: Any,
    manager: str = "u",
    *,
    kind: Kind = POD,
    now: str = NOW,
    subresource: str = "",
) -> Any:
    """Return what a write leads to, stored."""
    tree = written(new)
    entries = new["metadata"].get("managedFields")
    if entries is not None:
        tree["metadata"]["managedFields"] = entries
    return written(FieldManager(kind, subresource).update(live, tree, manager=manager, now=now))


def refused(live: Any, applied: Any, manager: str = "b", *, kind: Kind = POD) -> PatchError:
    """Return why an apply is refused; it must be."""
    result = FieldManager(kind).apply(live, applied, manager=manager, force=False, now=NOW)
    assert isinstance(result, PatchError)
    return result


def owners(tree: Any) -> dict[str, Any]:
    """Return what each manager owns."""
    entries = tree["metadata"].get("managedFields", [])
    return {entry["manager"]: entry["fieldsV1"] for entry in entries}
