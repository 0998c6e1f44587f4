"""The resources of one version of a group: as a flat list, and as the aggregated form has them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Any

from mooring.api.kinds import Kind
from mooring.apiserver.served import (
    CREATE,
    Part,
    Review,
    Served,
    categories_of,
    part_of,
    verbs_of,
)

Tree = dict[str, Any]
Entry = Served | Review


def entries_of(
    resources: Iterable[Served], reviews: Iterable[Review], group: str, version: str
) -> list[Entry]:
    """Return what is served in a version of a group, by name."""
    found: list[Entry] = [r for r in resources if r.group == group and version in r.kinds]
    found += [r for r in reviews if (r.group, r.version) == (group, version)]
    return sorted(found, key=lambda entry: entry.plural)


# --- the flat list --------------------------------------------------------------------------------


def resource_list(entries: Iterable[Entry], group: str, version: str) -> Tree:
    """Return the resources and their parts, each with its verbs."""
    listed: list[Tree] = []
    for entry in entries:
        if isinstance(entry, Review):
            listed.append(_flat(entry.plural, entry.kind, entry.namespaced, CREATE))
        else:
            listed.extend(_flat_resource(entry, entry.kinds[version]))
    api_version = {"apiVersion": "v1"} if group else {}
    group_version = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        **api_version,
        "groupVersion": group_version,
        "resources": listed,
    }


def _flat(plural: str, kind: str, namespaced: bool, verbs: tuple[str, ...]) -> Tree:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "kind": kind,
        "verbs": verbs,
    }


def _flat_resource(resource: Served, kind: Kind) -> list[Tree]:
    verbs = verbs_of(resource.plural)
    whole = _flat(resource.plural, kind.name, kind.namespaced, verbs)
    is_stored = verbs != CREATE
    stored = {"storageVersionHash": storage_version_hash(kind)} if is_stored else {}
    parts = [_flat_part(resource, kind, name) for name in sorted(resource.subresources)]
    return [{**whole, **_names(resource, kind), **stored}, *parts]


def _flat_part(resource: Served, kind: Kind, name: str) -> Tree:
    part = part_of(name)
    foreign = {"group": part.group, "version": part.version} if part.group else {}
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        **foreign,
        "kind": part.kind or kind.name,
        "verbs": part.verbs,
    }


def _names(resource: Served, kind: Kind) -> Tree:
    """Return the other names of a resource, as far as it has any."""
    categories = categories_of(resource.group, resource.plural)
    names = {"shortNames": kind.short_names, "categories": categories}
    return {key: value for key, value in names.items() if value}


def storage_version_hash(kind: Kind) -> str:
    """Return what changes when objects of the kind come to be stored in another version."""
    version = kind.hub_version.rpartition("/")[2]
    stored_as = f"{kind.hub_version.rpartition('/')[0]}/{version}/{kind.name}"
    return base64.b64encode(hashlib.sha256(stored_as.encode()).digest()[:8]).decode()


# --- the aggregated form --------------------------------------------------------------------------


def version_discovery(entries: Iterable[Entry], version: str) -> Tree:
    """Return a version of a group with its resources."""
    listed = [
        _nested_review(entry)
        if isinstance(entry, Review)
        else _nested_resource(entry, entry.kinds[version])
        for entry in entries
    ]
    return {"version": version, "resources": listed, "freshness": "Current"}


def _nested(plural: str, kind: str, namespaced: bool, verbs: tuple[str, ...]) -> Tree:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced" if namespaced else "Cluster",
        "singularResource": kind.lower(),
        "verbs": verbs,
    }


def _nested_review(review: Review) -> Tree:
    return _nested(review.plural, review.kind, review.namespaced, CREATE)


def _nested_resource(resource: Served, kind: Kind) -> Tree:
    whole = _nested(resource.plural, kind.name, kind.namespaced, verbs_of(resource.plural))
    parts = [_nested_part(part_of(name), kind, name) for name in sorted(resource.subresources)]
    below = {"subresources": parts} if parts else {}
    return {**whole, **_names(resource, kind), **below}


def _nested_part(part: Part, kind: Kind, name: str) -> Tree:
    response = {"group": part.group, "version": part.version, "kind": part.kind or kind.name}
    return {"subresource": name, "responseKind": response, "verbs": part.verbs}
