"""Deletes everything in a namespace, as Kubernetes' namespace controller does, with its messages.

1. Discover the resources that can be deleted in namespaces, each in its group's preferred version.
   A group that does not respond is reported, because it may have objects.
2. Delete pods first. While any remain, nothing that they use is deleted.
3. Delete the other resources as collections, or one by one where a server cannot do that.
4. Count the remaining objects, and the finalizers that block them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from moorage.api.core.namespace import RemainingContent
from moorage.client.contract import Request, Response
from moorage.client.errors import ClientError, NotFoundError, UnreadableError

T = TypeVar("T")

PAGE = 500
NOT_ALLOWED = 405

_BACKGROUND = msgspec.json.encode({"propagationPolicy": "Background"})


class RawClient(Protocol):
    """Sends any request."""

    async def send(self, request: Request) -> Response:
        """Return the response to a request, or raise ClientError."""


class ResourceName(NamedTuple):
    """A resource that can be deleted in namespaces, in one version."""

    group: str
    version: str
    plural: str
    verbs: frozenset[str]

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of its objects in a namespace, or of one of them."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        path = f"{base}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    def __str__(self) -> str:
        """Return the name as Kubernetes writes it."""
        return f"{self.group}/{self.version}, Resource={self.plural}"

    @property
    def is_pods(self) -> bool:
        """Whether these are the pods."""
        return (self.group, self.version, self.plural) == ("", "v1", "pods")


async def empty_namespace(
    client: RawClient, namespace: str, *, grace_s: int = 0
) -> RemainingContent:
    """Delete everything in a namespace and return what remains; pods may take some time."""
    found = await discover(client)
    resources: dict[str, int] = {}
    finalizers: Counter[str] = Counter()
    failures: list[str] = []
    for each in sorted(found.resources, key=lambda each: (not each.is_pods, each)):
        try:
            left = await _delete_all(client, each, namespace)
        except ClientError as error:
            failures.append(error.message)
            continue
        if not left:
            continue
        resources[f"{each.plural}.{each.group}"] = len(left)
        for item in left:
            finalizers.update(item.metadata.finalizers)
        if not any(item.metadata.finalizers for item in left) and not (each.is_pods and grace_s):
            failures.append(
                f"unexpected items still remain in namespace: {namespace} for gvr: {each}"
            )
        if each.is_pods:
            break
    return RemainingContent(resources, dict(finalizers), tuple(failures), found.failures)


# --- discovery ------------------------------------------------------------------------------------


class DiscoveredResources(NamedTuple):
    """Resources that can be deleted in namespaces, and failures of groups."""

    resources: tuple[ResourceName, ...]
    failures: tuple[str, ...]


class _Resource(Struct, frozen=True):
    name: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _ResourceList(Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _Version(Struct, frozen=True):
    version: str = ""


class _Group(Struct, frozen=True, rename="camel"):
    name: str = ""
    versions: tuple[_Version, ...] = ()
    preferred_version: _Version = _Version()


class _GroupList(Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


async def discover(client: RawClient) -> DiscoveredResources:
    """Return all resources that can be deleted in namespaces; the core group must respond."""
    listed = await _read(client, "/apis", _GroupList)
    found = {each.plural: each for each in await _resources(client, "", "v1")}
    chosen = {("", plural): each for plural, each in found.items()}
    failures: list[str] = []
    for group in listed.groups:
        preferred = group.preferred_version.version
        versions = [each.version for each in group.versions]
        for version in sorted(versions, key=lambda version: version != preferred):
            try:
                resources = await _resources(client, group.name, version)
            except ClientError as error:
                failures.append(f"{group.name}/{version}: {error.message}")
                continue
            for each in resources:
                chosen.setdefault((group.name, each.plural), each)
    return DiscoveredResources(tuple(chosen.values()), tuple(failures))


async def _resources(client: RawClient, group: str, version: str) -> list[ResourceName]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    listed = await _read(client, path, _ResourceList)
    return [
        ResourceName(group, version, each.name, frozenset(each.verbs))
        for each in listed.resources
        if each.namespaced and "/" not in each.name and "delete" in each.verbs
    ]


async def _read(client: RawClient, path: str, struct: type[T]) -> T:
    return _decoded(await client.send(Request("GET", path)), struct)


# --- the objects of one resource ------------------------------------------------------------------


class _Metadata(Struct, frozen=True):
    name: str = ""
    finalizers: tuple[str, ...] = ()


class _Item(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _ListMetadata(Struct, frozen=True):
    rest: str | None = msgspec.field(name="continue", default="")


class _List(Struct, frozen=True):
    metadata: _ListMetadata = _ListMetadata()
    items: tuple[_Item, ...] | None = ()


async def _delete_all(client: RawClient, resource: ResourceName, namespace: str) -> list[_Item]:
    """Delete all objects of a resource, and return those that remain."""
    if not await _delete_collection(client, resource, namespace):
        async for item in _items(client, resource, namespace):
            await _delete(client, resource.path(namespace, item.metadata.name))
    return [item async for item in _items(client, resource, namespace)]


async def _delete_collection(client: RawClient, resource: ResourceName, namespace: str) -> bool:
    """Delete all objects at once, if the server can do that; return whether it did."""
    if "deletecollection" not in resource.verbs:
        return False
    return await _delete(client, resource.path(namespace))


async def _delete(client: RawClient, path: str) -> bool:
    """Delete the object at a path; return False if it does not exist or cannot be deleted."""
    try:
        await client.send(Request("DELETE", path, body=_BACKGROUND))
    except ClientError as error:
        if isinstance(error, NotFoundError) or error.code == NOT_ALLOWED:
            return False
        raise
    return True


async def _items(client: RawClient, resource: ResourceName, namespace: str) -> AsyncIterator[_Item]:
    """Yield the objects of a resource; none if the server does not list them."""
    if "list" not in resource.verbs:
        return
    rest = ""
    while True:
        query = urlencode({"limit": PAGE, **({"continue": rest} if rest else {})})
        try:
            response = await client.send(Request("GET", resource.path(namespace), query))
        except ClientError as error:
            if isinstance(error, NotFoundError) or error.code == NOT_ALLOWED:
                return
            raise
        page = _decoded(response, _List)
        for item in page.items or ():
            yield item
        rest = page.metadata.rest or ""
        if not rest:
            return


def _decoded(response: Response, struct: type[T]) -> T:
    try:
        return msgspec.json.decode(response.body, type=struct)
    except msgspec.DecodeError as error:
        raise UnreadableError(f"the server's response cannot be decoded: {error}") from None
