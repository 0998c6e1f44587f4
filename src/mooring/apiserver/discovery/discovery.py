"""All documents of discovery, made once.

/api, /apis                 groups and versions; with everything below, if that form is accepted
/api/v1, /apis/GROUP/VERSION    resources
/apis/GROUP                 versions
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.apiserver.discovery.accept import Form, preferred_form
from mooring.apiserver.discovery.listing import entries_of, resource_list, version_discovery
from mooring.apiserver.documents import Document, plain, tagged
from mooring.apiserver.served import REVIEWS, Review, Served, version_order

Tree = dict[str, Any]

# Clients look for a resource that several groups have in this order.
_GROUPS = (
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "batch",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
)


class Discovery:
    """The documents by path, and by form where there are several."""

    def __init__(self, resources: Iterable[Served], reviews: Iterable[Review] = REVIEWS) -> None:
        self._resources = tuple(resources)
        self._reviews = tuple(reviews)
        self._groups = self._versions_by_group()
        self._plain = dict(self._plain_documents())
        self._aggregated = dict(self._aggregated_documents())

    def find(self, path: str, accept: str = "", *, address: str = "") -> Document | None:
        """Return the document of a path, in the form that is preferred; None if there is none.

        The address is the one by which clients reach the server; `/api` tells it.
        """
        path = path.rstrip("/")
        form = preferred_form(accept)
        if form is None:
            return None
        if form is not Form.LEGACY and (path, form) in self._aggregated:
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

    def _aggregated_documents(self) -> Iterable[tuple[tuple[str, Form], Document]]:
        trees = {group: self._group_discovery(group) for group in self._groups}
        below = {
            "/api": [tree for group, tree in trees.items() if not group],
            "/apis": [tree for group, tree in trees.items() if group],
        }
        for form in (Form.V2, Form.V2BETA1):
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
