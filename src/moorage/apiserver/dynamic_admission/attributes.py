"""Attributes: a write as policies and webhooks see it.

They see objects as JSON trees, in the version that their rules matched. An object is converted when
it is first needed; the trees of all versions are kept for the rest of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from moorage.api.catalogue import from_hub
from moorage.api.codec import to_tree
from moorage.apiserver.http.status import About, StatusError, forbidden
from moorage.apiserver.resources import Resource, subresource_of

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext
    from moorage.apiserver.verbs.resource_request import ResourceRequest

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"
NAMESPACES = "namespaces"

_OPTIONS = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}
_UNKNOWN_NAME = "Unknown"


class ResourceEndpoint(NamedTuple):
    """A resource in a version, and the kind of its objects."""

    group: str
    version: str
    resource: str
    kind_group: str
    kind_version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The version of the kind, with its group."""
        return f"{self.kind_group}/{self.kind_version}" if self.kind_group else self.kind_version


def endpoint_of(resource: Resource, version: str, subresource: str) -> ResourceEndpoint:
    """Return the endpoint of a resource or its subresource in a version."""
    kind, part = resource.kinds[version], subresource_of(subresource)
    group, name = resource.group, resource.plural
    if subresource and part.kind:
        where = (part.group, part.version) if part.version else (part.group or group, version)
        return ResourceEndpoint(group, version, name, *where, part.kind)
    return ResourceEndpoint(group, version, name, kind.group, kind.version, kind.name)


class Attributes:
    """One write, from the decoded body to the decisions of all policies and webhooks.

    `new` and `old` are objects in their hub version, or trees; mutations replace `new` with a tree.
    """

    def __init__(
        self,
        server: ServerContext,
        request: ResourceRequest,
        operation: str,
        *,
        new: Any = None,
        old: Any = None,
        name: str = "",
        options: Mapping[str, Any] | None = None,
        is_dry_run: bool | None = None,
    ) -> None:
        target = request.target
        self.server = server
        self.request = request
        self.operation = str(operation)
        self.user = request.user
        self.new = new
        self.old = old
        self.subresource = target.subresource
        self.endpoint = endpoint_of(request.resource, target.version, target.subresource)
        self.name = name or target.name or _metadata(new)[0]
        self.namespace = self.name if self.is_namespace else target.namespace
        self.is_dry_run = request.is_dry_run if is_dry_run is None else is_dry_run
        self._options = options
        self._trees: dict[tuple[bool, str], Any] = {}
        self._namespace_object: Any = None

    @property
    def is_namespace(self) -> bool:
        """Whether the request is about a namespace itself."""
        return self.endpoint.resource == NAMESPACES and not self.endpoint.group

    @property
    def options(self) -> dict[str, Any]:
        """The options of the request, as the type of its operation."""
        kind = _OPTIONS.get(self.operation)
        if kind is None:
            return {}
        if self.operation == UPDATE and self.request.content_type.endswith(_PATCHES):
            kind = "PatchOptions"
        query = self.request.query
        given = dict(self._options or {})
        for name in ("fieldManager", "fieldValidation"):
            if query.get(name):
                given[name] = query[name]
        if self.is_dry_run:
            given["dryRun"] = ["All"]
        return {**given, "kind": kind, "apiVersion": "meta.k8s.io/v1"}

    def object(self, endpoint: ResourceEndpoint) -> Any:
        """Return the tree of the object after the request, or None."""
        return self._tree(endpoint, is_old=False)

    def old_object(self, endpoint: ResourceEndpoint) -> Any:
        """Return the tree of the object before the request, or None."""
        return self._tree(endpoint, is_old=True)

    def replace(self, tree: Any) -> None:
        """Replace the object with a tree."""
        self.new = tree
        self._trees = {key: each for key, each in self._trees.items() if key[0]}

    def labels(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        """Return the labels of the object after and before the request."""
        return _metadata(self.new)[2], _metadata(self.old)[2]

    async def namespace_object(self) -> Any | None:
        """Return the Namespace of the object, or None for an object without one."""
        if self._namespace_object is None and self.namespace and not self.is_namespace:
            self._namespace_object = await self.server.namespace(self.namespace)
        return self._namespace_object

    def forbidden(self, why: str) -> StatusError:
        """Return 403 with the name of the object."""
        name, prefix, _ = _metadata(self.new)
        shown = self.name or name or prefix or _UNKNOWN_NAME
        about = About(self.endpoint.resource, self.endpoint.kind, self.endpoint.group)
        return forbidden(about, shown, why)

    def _tree(self, endpoint: ResourceEndpoint, *, is_old: bool) -> Any:
        key = (is_old, endpoint.api_version)
        if key not in self._trees:
            value = self.old if is_old else self.new
            self._trees[key] = None if value is None else tree_of(value, endpoint.api_version)
        return self._trees[key]


_PATCHES = ("-patch+json", "-patch+yaml", "-patch+cbor")


def tree_of(value: Any, api_version: str) -> Any:
    """Return an object as a tree, in a version of its kind."""
    if isinstance(value, dict):
        return value if value.get("apiVersion") == api_version else _converted(value, api_version)
    if value.api_version != api_version:
        value = from_hub(value, api_version)
    return to_tree(value)


def _converted(tree: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Return a tree in another version; kinds that are served as trees only change apiVersion."""
    return {**tree, "apiVersion": api_version}


def _metadata(value: Any) -> tuple[str, str, Mapping[str, str] | None]:
    """Return the name, its prefix and the labels of an object, or None."""
    if value is None:
        return "", "", None
    if isinstance(value, dict):
        found = value.get("metadata")
        tree = found if isinstance(found, dict) else {}
        labels = tree.get("labels")
        return (
            str(tree.get("name") or ""),
            str(tree.get("generateName") or ""),
            labels if isinstance(labels, dict) else {},
        )
    metadata = value.metadata
    return metadata.name, metadata.generate_name, metadata.labels
