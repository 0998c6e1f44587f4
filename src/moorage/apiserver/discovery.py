"""Discovery: documents that list the resources of a server, built once.

/api, /apis                       groups and versions; aggregated discovery if a client accepts it
/api/v1, /apis/GROUP/VERSION      resources
/apis/GROUP                       versions
/version                          the Kubernetes version that the server is compatible with
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any

from moorage import __version__
from moorage.api.kinds import Kind
from moorage.apiserver.http.messages import JSON, Document, plain, tagged
from moorage.apiserver.http.negotiation import AcceptClause, read_accept
from moorage.apiserver.resources import (
    CREATE,
    REVIEWS,
    Resource,
    Review,
    Subresource,
    subresource_of,
)

Tree = dict[str, Any]

# The order in which clients look for a resource that several groups have.
_GROUPS = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
)


class Discovery:
    """The discovery documents by path and form."""

    def __init__(self, resources: Iterable[Resource], reviews: Iterable[Review] = REVIEWS) -> None:
        self._resources = tuple(resources)
        self._reviews = tuple(reviews)
        self._groups = self._versions_by_group()
        self._plain = dict(self._plain_documents())
        self._aggregated = dict(self._aggregated_documents())

    def find(self, path: str, accept: str = "", *, address: str = "") -> Document | None:
        """Return the document of a path in the preferred form; None if there is none.

        The address is where clients reach the server; `/api` has it.
        """
        path = path.rstrip("/")
        form = preferred_form(accept)
        if form is None:
            return None
        if form is not DiscoveryForm.LEGACY and (path, form) in self._aggregated:
            return self._aggregated[path, form]
        if path == "/api":
            return plain(self._core_versions(address))
        return self._plain.get(path)

    def __contains__(self, path: str) -> bool:
        path = path.rstrip("/")
        return path == "/api" or path in self._plain

    def _versions_by_group(self) -> dict[str, list[str]]:
        versions: dict[str, set[str]] = {}
        for resource in self._resources:
            versions.setdefault(resource.group, set()).update(resource.kinds)
        for review in self._reviews:
            versions.setdefault(review.group, set()).add(review.version)
        known = [group for group in ("", *_GROUPS) if group in versions]
        order = known + sorted(versions.keys() - set(known))
        return {group: sorted(versions[group], key=version_order) for group in order}

    def _plain_documents(self) -> Iterable[tuple[str, Document]]:
        named = {group: found for group, found in self._groups.items() if group}
        groups = [_group(group, versions) for group, versions in named.items()]
        yield "/apis", plain({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        for tree in groups:
            head = {"kind": "APIGroup", "apiVersion": "v1"}
            yield f"/apis/{tree['name']}", plain({**head, **tree})
        for group, versions in self._groups.items():
            base = f"/apis/{group}" if group else "/api"
            for version in versions:
                entries = entries_of(self._resources, self._reviews, group, version)
                yield f"{base}/{version}", plain(resource_list(entries, group, version))

    def _core_versions(self, address: str) -> Tree:
        return {
            "kind": "APIVersions",
            "versions": self._groups.get("", []),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }

    def _aggregated_documents(self) -> Iterable[tuple[tuple[str, DiscoveryForm], Document]]:
        trees = {group: self._group_discovery(group) for group in self._groups}
        below = {
            "/api": [tree for group, tree in trees.items() if not group],
            "/apis": [tree for group, tree in trees.items() if group],
        }
        for form in (DiscoveryForm.V2, DiscoveryForm.V2BETA1):
            for path, items in below.items():
                tree = {
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": f"apidiscovery.k8s.io/{form.value}",
                    "metadata": {},
                    "items": items,
                }
                yield (path, form), tagged(tree, form.content_type, "public")

    def _group_discovery(self, group: str) -> Tree:
        versions = [
            version_discovery(entries_of(self._resources, self._reviews, group, version), version)
            for version in self._groups[group]
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _group(name: str, versions: list[str]) -> Tree:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


# --- negotiation ----------------------------------------------------------------------------------

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


class DiscoveryForm(Enum):
    """A form of discovery."""

    LEGACY = ""
    V2 = "v2"
    V2BETA1 = "v2beta1"

    @property
    def content_type(self) -> str:
        """The content type of the response."""
        return AGGREGATED_TYPE.format(self.value) if self.value else JSON


_AGGREGATED = {form.value: form for form in DiscoveryForm if form.value}


def preferred_form(accept: str) -> DiscoveryForm | None:
    """Return the preferred form of an Accept header; None if no form is acceptable."""
    forms = (_form(clause) for clause in read_accept(accept) if clause.covers(JSON))
    return next((form for form in forms if form is not None), None)


def _form(clause: AcceptClause) -> DiscoveryForm | None:
    wanted = clause.parameters
    if "as" not in wanted:
        return DiscoveryForm.LEGACY
    if (wanted["as"], wanted.get("g")) != ("APIGroupDiscoveryList", "apidiscovery.k8s.io"):
        return None
    return _AGGREGATED.get(wanted.get("v", ""))


# --- resources of a version -----------------------------------------------------------------------

DiscoveryEntry = Resource | Review


def entries_of(
    resources: Iterable[Resource], reviews: Iterable[Review], group: str, version: str
) -> list[DiscoveryEntry]:
    """Return the resources and reviews of a version, by name."""
    found: list[DiscoveryEntry] = [r for r in resources if r.group == group and version in r.kinds]
    found += [r for r in reviews if (r.group, r.version) == (group, version)]
    return sorted(found, key=lambda entry: entry.plural)


# --- the flat list --------------------------------------------------------------------------------


def resource_list(entries: Iterable[DiscoveryEntry], group: str, version: str) -> Tree:
    """Return the resources and subresources of a version, each with its verbs."""
    listed: list[Tree] = []
    for entry in entries:
        if isinstance(entry, Review):
            listed.append(_flat(entry.plural, entry.kind, entry.namespaced, entry.verbs))
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


def _flat_resource(resource: Resource, kind: Kind) -> list[Tree]:
    verbs = resource.verbs
    whole = _flat(resource.plural, kind.name, kind.namespaced, verbs)
    whole["singularName"] = resource.singular
    is_stored = verbs != CREATE
    stored = {"storageVersionHash": storage_version_hash(kind)} if is_stored else {}
    names = _part_names(resource, kind)
    parts = [_flat_part(resource, kind, name) for name in names]
    return [{**whole, **_names(resource, kind), **stored}, *parts]


def _part_names(resource: Resource, kind: Kind) -> list[str]:
    """Return the subresources in order; of custom resources the status comes first."""
    names = resource.subresources_in(kind.version)
    return sorted(names, reverse=resource.definition is not None)


def _flat_part(resource: Resource, kind: Kind, name: str) -> Tree:
    part = subresource_of(name)
    foreign = {"group": part.group, "version": part.version} if part.group else {}
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        **foreign,
        "kind": part.kind or kind.name,
        "verbs": part.verbs,
    }


def _names(resource: Resource, kind: Kind) -> Tree:
    """Return the short names and categories of a resource, if it has any."""
    names = {"shortNames": kind.short_names, "categories": resource.categories}
    return {key: value for key, value in names.items() if value}


def storage_version_hash(kind: Kind) -> str:
    """Return the hash of the storage version, which changes with it."""
    version = kind.hub_version.rpartition("/")[2]
    stored_as = f"{kind.hub_version.rpartition('/')[0]}/{version}/{kind.name}"
    return base64.b64encode(hashlib.sha256(stored_as.encode()).digest()[:8]).decode()


# --- the aggregated form --------------------------------------------------------------------------


def version_discovery(entries: Iterable[DiscoveryEntry], version: str) -> Tree:
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
    return _nested(review.plural, review.kind, review.namespaced, review.verbs)


def _nested_resource(resource: Resource, kind: Kind) -> Tree:
    whole = _nested(resource.plural, kind.name, kind.namespaced, resource.verbs)
    whole["singularResource"] = resource.singular
    names = _part_names(resource, kind)
    parts = [_nested_part(subresource_of(name), kind, name) for name in names]
    below = {"subresources": parts} if parts else {}
    return {**whole, **_names(resource, kind), **below}


def _nested_part(part: Subresource, kind: Kind, name: str) -> Tree:
    response = {"group": part.group, "version": part.version, "kind": part.kind or kind.name}
    return {"subresource": name, "responseKind": response, "verbs": part.verbs}


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version: v1 before v1beta2 before v1beta1 before v1alpha3.

    Names of another form come last, in the order of the alphabet.
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found["stage"]]
    return (stage, -int(found["major"]), -int(found["minor"] or 0), "")


_VERSION = re.compile(
    "v(?P<major>[1-9][0-9]{0,9})(?:(?P<stage>alpha|beta)(?P<minor>[1-9][0-9]{0,9}))?"
)


# --- version --------------------------------------------------------------------------------------

MAJOR, MINOR = "1", "37"
COMPATIBLE_MINOR = "36"


def version_document(*, python_version: str, platform: str) -> Document:
    """Return the version document; clients compare major and minor with their own."""
    return plain(
        {
            "major": MAJOR,
            "minor": MINOR,
            "emulationMajor": MAJOR,
            "emulationMinor": MINOR,
            "minCompatibilityMajor": MAJOR,
            "minCompatibilityMinor": COMPATIBLE_MINOR,
            "gitVersion": f"v{MAJOR}.{MINOR}.0+moorage.{__version__}",
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{python_version}",  # there is no other field for it
            "compiler": "python",
            "platform": platform,
        }
    )
