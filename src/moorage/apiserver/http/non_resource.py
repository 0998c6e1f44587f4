"""Paths that are not resources: discovery, OpenAPI, health, version and metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from moorage.apiserver.auth.access import RequestAttributes
from moorage.apiserver.discovery import Discovery
from moorage.apiserver.http.messages import (
    NO_CACHE,
    NOT_FOUND_TEXT,
    PLAIN_TEXT,
    Document,
    Request,
    Response,
    text_response,
)
from moorage.apiserver.http.metrics import Metrics
from moorage.apiserver.http.status import method_not_allowed, not_acceptable
from moorage.apiserver.openapi import Moved, OpenAPI
from moorage.apiserver.resources import Resources, Review
from moorage.kit.metrics import PROMETHEUS
from moorage.store.contract import Store
from moorage.store.errors import StoreError

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")


class ServedVersions:
    """The groups and versions that a server has now."""

    def __init__(self, resources: Resources, reviews: Iterable[Review]) -> None:
        self._resources = resources
        self._reviews = {(r.group, r.version) for r in reviews}
        self._known: set[tuple[str, str]] = set()
        self._generation = -1

    def _all(self) -> set[tuple[str, str]]:
        if self._generation != self._resources.generation:
            self._generation = self._resources.generation
            served = {(r.group, version) for r in self._resources for version in r.kinds}
            self._known = served | self._reviews
        return self._known

    def __contains__(self, version: object) -> bool:
        return version in self._all()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class ServerDocuments:
    """Documents about what the server serves; they follow its custom resources."""

    def __init__(
        self,
        resources: Resources,
        reviews: Iterable[Review],
        version: Document,
        address: str = "",  # where clients reach the server, for `/api`
        metrics: Iterable[Review] = (),  # of nodes and pods, which the server asks nodes for
    ) -> None:
        self._resources = resources
        self._reviews = tuple(reviews)
        self._metrics = tuple(metrics)
        self._generation = resources.generation
        self._discovery = Discovery(resources, (*self._reviews, *self._metrics))
        self._openapi = OpenAPI(resources, self._reviews)
        self.version = version
        self.address = address

    @property
    def discovery(self) -> Discovery:
        """The discovery documents."""
        self._renew()
        return self._discovery

    @property
    def openapi(self) -> OpenAPI:
        """The OpenAPI documents."""
        self._renew()
        return self._openapi

    def _renew(self) -> None:
        if self._generation != self._resources.generation:
            self._generation = self._resources.generation
            self._discovery = Discovery(self._resources, (*self._reviews, *self._metrics))
            self._openapi = self._openapi.renewed(self._resources)


class NonResourcePaths:
    """Answers requests for paths that are not resources."""

    def __init__(
        self,
        documents: ServerDocuments,
        versions: Collection[tuple[str, str]],
        metrics: Metrics,
        store: Store,
    ) -> None:
        self._documents = documents
        self._versions = versions  # groups and versions
        self._metrics = metrics
        self._store = store

    async def answer(self, request: Request) -> Response:
        """Return the response to a request, or raise its Status."""
        path = request.path
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if _first_segment(path) in HEALTH_PATHS:
            return await self._health(path, request)
        match path.rstrip("/") or "/":
            case "/version":
                return _document_response(self._documents.version, request)
            case "/metrics":
                revision = await self._store.revision()
                return Response(self._metrics.text(revision).encode(), 200, PROMETHEUS)
            case "/":
                return Response(msgspec.json.encode({"paths": self._root_paths()}))
        return self._document(request)

    def _document(self, request: Request) -> Response:
        path, accept = request.path, request.accept
        openapi, discovery = self._documents.openapi, self._documents.discovery
        if path in openapi:
            found = openapi.find(path, accept, request.query.get("hash", ""))
            if isinstance(found, Moved):
                headers = (*NO_CACHE, ("Location", found.location))
                return Response(b"", 301, PLAIN_TEXT, headers)
        elif path in discovery:
            found = discovery.find(path, accept, address=self._documents.address)
        else:
            return text_response(NOT_FOUND_TEXT, 404)
        if found is None:
            raise not_acceptable(("application/json", "application/yaml"))
        return _document_response(found, request)

    def _root_paths(self) -> list[str]:
        groups = {f"/apis/{g}" if g else "/api" for g, _ in self._versions}
        versions = {f"/apis/{g}/{v}" if g else f"/api/{v}" for g, v in self._versions}
        others = {"/apis", *HEALTH_PATHS, "/metrics", "/openapi/v2", "/openapi/v3", "/version"}
        return sorted(groups | versions | others)

    async def _health(self, path: str, request: Request) -> Response:
        endpoint, _, name = path.strip("/").partition("/")
        checks = await self._checks(endpoint)
        if name and name not in checks:
            return text_response(NOT_FOUND_TEXT, 404)
        selected = {name: checks[name]} if name else checks
        lines = "".join(
            f"[-]{check} failed: {trouble}\n" if trouble else f"[+]{check} ok\n"
            for check, trouble in selected.items()
        )
        if any(selected.values()):
            return text_response(f"{lines}{endpoint} check failed\n", 500)
        if "verbose" in request.query:
            return text_response(f"{lines}{endpoint} check passed\n")
        return text_response("ok")

    async def _checks(self, endpoint: str) -> dict[str, str]:
        """Return the checks of an endpoint, each with what is wrong; empty: nothing.

        A server that cannot write still answers reads and watches, and a restart would not help.
        So it is alive, but not ready.
        """
        checks = {"ping": "", "store": await self._store_trouble()}
        if endpoint == "readyz":
            checks["store-writable"] = await self._store.trouble()
        return checks

    async def _store_trouble(self) -> str:
        try:
            await self._store.revision()
        except StoreError:
            return "it cannot be read"
        return ""


def path_attributes(request: Request) -> RequestAttributes:
    """Return the attributes of a request; access to a health path includes its checks."""
    verb = request.method.lower() if request.method != "HEAD" else "get"
    first = _first_segment(request.path)
    return RequestAttributes(verb, path=first if first in HEALTH_PATHS else request.path)


def _first_segment(path: str) -> str:
    return f"/{path.strip('/').partition('/')[0]}"


def _document_response(document: Document, request: Request) -> Response:
    headers = tuple(
        (name, value) for name, value in document.headers.items() if name != "Content-Type"
    )
    if document.is_known(request.headers.get("if-none-match", "")):
        return Response(b"", 304, document.content_type, headers)
    return Response(document.body, 200, document.content_type, headers)
