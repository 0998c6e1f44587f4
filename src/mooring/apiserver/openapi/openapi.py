"""/openapi/v3: one document a version of a group, and an index of them.

A document is made when it is first asked for and kept as bytes. The index names each with the
hash of its content; clients keep what they got under that name for ever.

Documents are JSON. Clients that accept nothing but protobuf get none: kubectl asks for JSON.
Of /openapi/v2 there are the definitions: see `swagger`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from mooring.apiserver.accept import read_accept
from mooring.apiserver.documents import JSON, Document, content_hash
from mooring.apiserver.openapi import schemas, swagger
from mooring.apiserver.openapi.paths import paths_of
from mooring.apiserver.served import REVIEWS, Review, Served

ROOT = "/openapi/v3"
FOR_EVER = "public, immutable, max-age=31536000"

Tree = dict[str, Any]


class Moved(NamedTuple):
    """Where the document is now that a client knows under an old hash."""

    location: str


class OpenAPI:
    """The documents of what is served."""

    def __init__(self, resources: Iterable[Served], reviews: Iterable[Review] = REVIEWS) -> None:
        self._resources = tuple(resources)
        self._reviews = tuple(reviews)
        served = {(r.group, version) for r in self._resources for version in r.kinds}
        served |= {(review.group, review.version) for review in self._reviews}
        self._versions = {_path(group, version): (group, version) for group, version in served}
        self._documents: dict[str, Document] = {}

    def find(self, path: str, accept: str = "", wanted_hash: str = "") -> Document | Moved | None:
        """Return the answer to a path; None if there is none, or none that is accepted."""
        path = path.rstrip("/")
        if path == swagger.ROOT:
            return self._swagger(accept)
        if path not in self or not any(c.covers(JSON) for c in read_accept(accept)):
            return None
        if path == ROOT:
            return self.index
        document = self.document(path.removeprefix(f"{ROOT}/"))
        if not wanted_hash:
            return document
        if wanted_hash != document.etag.strip('"'):
            return Moved(_location(path.removeprefix(f"{ROOT}/"), document))
        return document._replace(cache_control=FOR_EVER)

    def _swagger(self, accept: str) -> Document | None:
        """Return the document of v2; the one in JSON is made once."""
        found = swagger.swagger_document(accept)
        if found is None or found.content_type != JSON:
            return found
        if (known := self._documents.get(swagger.ROOT)) is None:
            known = swagger.swagger_document(JSON, self._all_schemas)
            assert known is not None
            self._documents[swagger.ROOT] = known
        return known

    def _all_schemas(self) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        for name in sorted(self._versions):
            tree = msgspec.json.decode(self.document(name).body)
            found.update(tree["components"]["schemas"])
        return found

    def __contains__(self, path: str) -> bool:
        path = path.rstrip("/")
        return path in (ROOT, swagger.ROOT) or path.removeprefix(f"{ROOT}/") in self._versions

    def document(self, name: str) -> Document:
        """Return the document of a version of a group, such as `apis/resource.k8s.io/v1`."""
        if (known := self._documents.get(name)) is None:
            body = openapi_document(*self._versions[name], self._resources, self._reviews)
            known = Document(body, JSON, f'"{content_hash(body)}"')
            self._documents[name] = known
        return known

    @cached_property
    def index(self) -> Document:
        """Where each document is; all of them are made for it."""
        names_in_order = sorted(self._versions)
        paths = {
            name: {"serverRelativeURL": _location(name, self.document(name))}
            for name in names_in_order
        }
        body = msgspec.json.encode({"paths": paths})
        # Kubernetes says so of the index, and clients do not look.
        return Document(body, "text/plain; charset=utf-8", f'"{content_hash(body)}"')


def openapi_document(
    group: str, version: str, resources: Iterable[Served], reviews: Iterable[Review] = REVIEWS
) -> bytes:
    """Return the document of a version of a group as JSON."""
    mine = [r for r in resources if r.group == group and version in r.kinds]
    asked = [r for r in reviews if (r.group, r.version) == (group, version)]
    components = schemas.schemas_of(resource.kinds[version] for resource in mine)
    components.update({name: tree for review in asked for name, tree in _review_schema(review)})
    tree = {
        "openapi": "3.0.0",
        "info": {"title": "Mooring", "version": "1.37"},
        "paths": paths_of(group, version, mine, asked),
        "components": {"schemas": {**_ANY_PART, **components}, "securitySchemes": _SECURITY},
    }
    return msgspec.json.encode(tree)


_ANY_PART = {schemas.RAW: schemas.SCALARS[schemas.RAW]}
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Token in the header Authorization",
        "name": "authorization",
        "in": "header",
    }
}


def _review_schema(review: Review) -> Iterable[tuple[str, Tree]]:
    gvk = [{"group": review.group, "version": review.version, "kind": review.kind}]
    component = f"{schemas.package_of(review.group, review.version)}.{review.kind}"
    tree = {
        "description": "A question in its spec, and the answer in its status.",
        "type": "object",
        "properties": {"apiVersion": schemas.API_VERSION, "kind": schemas.KIND},
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": gvk,
    }
    yield component, tree


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _location(name: str, document: Document) -> str:
    tag = document.etag.strip('"')
    return f"{ROOT}/{name}?hash={tag}"
