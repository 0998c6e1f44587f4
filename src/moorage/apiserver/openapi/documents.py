"""/openapi/v3 and /openapi/v2: one document a version of a group, and an index of them.

A document of v3 is made when it is first asked for and kept as bytes. The index names each with the
hash of its content; clients cache a document under that name forever. Documents are JSON.
Clients that accept nothing but protobuf get none: kubectl asks for JSON.

/openapi/v2 is one document: in JSON it has all definitions, in protobuf it describes nothing.
kubectl, which asks for protobuf, does so only where v3 does not say enough: for kinds that cannot
be patched, such as access reviews, and in `explain --output plaintext-openapiv2`; up to 1.28 it
also does before it creates anything. It takes a kind that the document lacks as valid and leaves
the rest to the server; without a document it gives up. Other tools read the JSON: its definitions
are those of v3, in the older language.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from moorage.apiserver.http.messages import JSON, Document, content_hash
from moorage.apiserver.http.negotiation import read_accept
from moorage.apiserver.openapi import schemas
from moorage.apiserver.openapi.paths import paths_of
from moorage.apiserver.resources import REVIEWS, Resource, Review

ROOT = "/openapi/v3"
V2_ROOT = "/openapi/v2"
FOR_EVER = "public, immutable, max-age=31536000"

_TITLE, _VERSION = "Moorage", "1.37"

Tree = dict[str, Any]


class Moved(NamedTuple):
    """Where the document is now that a client knows under an old hash."""

    location: str


class OpenAPI:
    """The OpenAPI documents of the served resources."""

    def __init__(self, resources: Iterable[Resource], reviews: Iterable[Review] = REVIEWS) -> None:
        self._resources = tuple(resources)
        self._reviews = tuple(reviews)
        served = {(r.group, version) for r in self._resources for version in r.kinds}
        served |= {(review.group, review.version) for review in self._reviews}
        self._versions = {_path(group, version): (group, version) for group, version in served}
        self._documents: dict[str, Document] = {}

    def renewed(self, resources: Iterable[Resource]) -> OpenAPI:
        """Return the documents of other resources; those that stay the same are not made again."""
        new = OpenAPI(resources, self._reviews)
        for name, document in self._documents.items():
            which = self._versions[name]
            if name in new._versions and self._of(*which) == new._of(*which):
                new._documents[name] = document
        return new

    def _of(self, group: str, version: str) -> list[int]:
        return [id(r) for r in self._resources if r.group == group and version in r.kinds]

    def find(self, path: str, accept: str = "", wanted_hash: str = "") -> Document | Moved | None:
        """Return the answer to a path; None if there is none, or none that is accepted."""
        path = path.rstrip("/")
        if path == V2_ROOT:
            return self._v2(accept)
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

    def _v2(self, accept: str) -> Document | None:
        """Return the document of v2 in the first form that is accepted."""
        for clause in read_accept(accept):
            if clause.media_type in _PROTOBUF_NAMES:
                return _tagged(_v2_protobuf(), _PROTOBUF)
            if clause.covers(JSON):
                return self._v2_json
        return None

    @cached_property
    def _v2_json(self) -> Document:
        found: dict[str, Tree] = {}
        for name in sorted(self._versions):
            tree = msgspec.json.decode(self.document(name).body)
            found.update(tree["components"]["schemas"])
        body = {
            "swagger": "2.0",
            "info": {"title": _TITLE, "version": _VERSION},
            "paths": {},
            "definitions": {name: _older(tree) for name, tree in sorted(found.items())},
        }
        return _tagged(msgspec.json.encode(body), JSON)

    def __contains__(self, path: str) -> bool:
        path = path.rstrip("/")
        return path in (ROOT, V2_ROOT) or path.removeprefix(f"{ROOT}/") in self._versions

    def document(self, name: str) -> Document:
        """Return the document of a version of a group, such as `apis/resource.k8s.io/v1`."""
        if (known := self._documents.get(name)) is None:
            body = openapi_document(*self._versions[name], self._resources, self._reviews)
            known = self._documents[name] = _tagged(body, JSON)
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
        # Kubernetes sends this type for the index, and clients ignore it.
        return _tagged(body, "text/plain; charset=utf-8")


def openapi_document(
    group: str, version: str, resources: Iterable[Resource], reviews: Iterable[Review] = REVIEWS
) -> bytes:
    """Return the document of a version of a group as JSON."""
    mine = [r for r in resources if r.group == group and version in r.kinds]
    asked = [r for r in reviews if (r.group, r.version) == (group, version)]
    components = schemas.schemas_of(resource.kinds[version] for resource in mine)
    components.update({name: tree for review in asked for name, tree in _review_schema(review)})
    tree = {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": _VERSION},
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
        "description": "A review: the request is in its spec, the result in its status.",
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


# --- OpenAPI v2 --------------------------------------------------------------------------------

_V3, _V2 = "#/components/schemas/", "#/definitions/"

_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_NAMES = (_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

# Numbers of fields in gnostic's OpenAPI v2: Document 1 swagger, 2 info, 8 paths; Info 1, 2.
_LENGTH_DELIMITED = 2


def _field(number: int, content: bytes) -> bytes:
    assert number < 16  # one byte for the tag
    assert len(content) < 128  # and one for the length
    return bytes((number << 3 | _LENGTH_DELIMITED, len(content))) + content


def _v2_protobuf() -> bytes:
    info = _field(1, _TITLE.encode()) + _field(2, _VERSION.encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"")


def _older(schema: Any) -> Any:
    """Return a schema of v3 as v2 has it: other references, which have descriptions beside them."""
    if isinstance(schema, list):
        return [_older(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    match schema:
        case {"allOf": [{"$ref": str(reference)}], **rest}:
            schema = {**rest, "$ref": reference}
        case {"oneOf": list(), **rest}:
            schema = {"type": "string", **rest}
    return {
        name: value.replace(_V3, _V2) if name == "$ref" else _older(value)
        for name, value in schema.items()
        if name != "default"
    }


def _tagged(body: bytes, content_type: str) -> Document:
    return Document(body, content_type, f'"{content_hash(body)}"')
