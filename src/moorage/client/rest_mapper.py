"""Maps kinds to paths, in a version that the server serves.

A kind with several versions is used in its hub version if the server has that, else in the newest
it has. Discovery asks the server once per group.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from moorage.api.catalogue import CATALOGUE, KINDS
from moorage.api.kinds import Kind
from moorage.api.names import path_segment
from moorage.client.errors import BadRequestError, ClientError, NotFoundError, UnavailableError

_PLAIN = re.compile(r"[A-Za-z0-9._:-]*", re.ASCII)  # needs no quoting in a path

Fetch = Callable[[str], Awaitable[bytes]]  # the body at a path


class Endpoint(Struct, frozen=True):
    """A kind in a version that the server serves, and its path."""

    kind: Kind
    base: str

    @property
    def is_hub(self) -> bool:
        """Whether objects come in the hub version."""
        return self.kind.api_version == self.kind.hub_version

    def collection(self, namespace: str) -> str:
        """Return the path of all objects, or of those in a namespace."""
        plural = self.kind.plural
        if namespace and self.kind.namespaced:
            return f"{self.base}/namespaces/{_quoted(namespace)}/{plural}"
        return f"{self.base}/{plural}"

    def object(self, namespace: str, name: str, subresource: str = "") -> str:
        """Return the path of an object or of a subresource."""
        if not name:
            raise BadRequestError(f"{self.kind.name}: {name!r} is not the name of an object")
        if self.kind.namespaced and not namespace:
            raise BadRequestError(f"{self.kind.name} {name}: no namespace is given")
        path = f"{self.collection(namespace)}/{_quoted(name)}"
        return f"{path}/{subresource}" if subresource else path


class RESTMapper:
    """The endpoints of a server, discovered when first needed."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._found: dict[type[Any], Endpoint] = {}
        self._served: dict[str, dict[str, frozenset[str]]] = {}  # plurals by version, by group
        self._discovering = asyncio.Lock()

    def find(self, struct: type[Any]) -> Endpoint | None:
        """Return the endpoint of a kind, if it was discovered before."""
        return self._found.get(struct)

    async def ask(self, struct: type[Any]) -> Endpoint:
        """Return the endpoint of a kind; discover it if the kind has several versions."""
        kinds = _kinds_of(struct)
        if len(kinds) == 1:
            endpoint = self._found[struct] = _endpoint(kinds[0])
            return endpoint
        async with self._discovering:
            if struct in self._found:
                return self._found[struct]
            served = await self._versions(kinds)
            for kind in kinds:
                if kind.plural in served.get(kind.api_version, ()):
                    endpoint = self._found[struct] = _endpoint(kind)
                    return endpoint
        return _endpoint(kinds[0])  # the server will respond 404; it may serve the kind later

    def forget(self, struct: type[Any]) -> None:
        """Discover a kind again, because the server responded 404."""
        found = self._found.pop(struct, None)
        if found is not None:
            self._served.pop(found.kind.group, None)

    async def _versions(self, kinds: tuple[Kind, ...]) -> dict[str, frozenset[str]]:
        group = kinds[0].group
        if group in self._served:
            return self._served[group]
        served: dict[str, frozenset[str]] = {}
        for api_version in sorted({kind.api_version for kind in _all_versions(kinds)}):
            try:
                served[api_version] = _plurals(await self._fetch(f"/apis/{api_version}"))
            except UnavailableError:
                raise
            except NotFoundError:
                continue
            except ClientError:  # discovery is forbidden: try the hub version
                return {kind.api_version: frozenset({kind.plural}) for kind in kinds[:1]}
        if served:
            self._served[group] = served
        return served


def _kinds_of(struct: type[Any]) -> tuple[Kind, ...]:
    """Return a kind in all its versions, the struct's own version first."""
    found = _KINDS.get(struct)
    if found is None:
        raise BadRequestError(f"{struct.__name__} is not a kind that servers have")
    return found


def _all_versions(kinds: Iterable[Kind]) -> Iterable[Kind]:
    groups = {kind.group for kind in kinds}
    return (kind for kind in KINDS if kind.group in groups and len(_versions_of(kind)) > 1)


def _versions_of(kind: Kind) -> tuple[Kind, ...]:
    """Return all versions of a kind: the hub first, then the newest first."""
    found = [k for k in CATALOGUE if (k.group, k.name) == (kind.group, kind.name) and k.plural]
    # The catalogue lists the newest first.
    return tuple(sorted(found, key=lambda k: k.api_version != k.hub_version))


def _by_struct() -> dict[type[Any], tuple[Kind, ...]]:
    found: dict[type[Any], tuple[Kind, ...]] = {}
    for kind in KINDS:
        if not kind.plural:
            continue
        if kind.api_version == kind.hub_version:
            found[kind.struct] = _versions_of(kind)
        else:
            found.setdefault(kind.struct, (kind,))  # such as events of events.k8s.io
    return found


_KINDS = _by_struct()


def _endpoint(kind: Kind) -> Endpoint:
    return Endpoint(kind, f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}")


def _quoted(text: str) -> str:
    """Quote a name for a path; servers unquote `%2F`, so no name may have a slash or `%`."""
    if _PLAIN.fullmatch(text) and text not in (".", ".."):
        return text
    for problem in path_segment(text):
        raise BadRequestError(f"invalid name {text[:128]!r}: {problem}")
    return quote(text, safe="")


class _ResourceEntry(Struct):
    name: str = ""


class _ResourceList(Struct):
    resources: list[_ResourceEntry] | None = None


_RESOURCES = msgspec.json.Decoder(_ResourceList)


def _plurals(body: bytes) -> frozenset[str]:
    try:
        found = _RESOURCES.decode(body).resources or ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frozenset()
    return frozenset(entry.name for entry in found)
