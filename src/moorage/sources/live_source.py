"""A running cluster as a source of objects.

Many users may read only a few namespaces. So a kind that they may not list in the whole cluster is
listed in each known namespace: in all of them if namespaces may be listed, otherwise in that of the
kubeconfig's context and in the one that was named. What is lost with the connection is as unknown
as what may not be read; what came before is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from moorage.api.catalogue import KINDS
from moorage.api.core import Namespace
from moorage.api.errors import ApiError
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import RestConfig, http_client, load_rest_config
from moorage.client.contract import list_all
from moorage.client.errors import (
    ClientError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnavailableError,
)
from moorage.insight.messages import Concern, listed
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.insight.snapshot.unread import Obstacle, UnreadKind
from moorage.sources.cluster_sources import Taker

REQUESTS_MAX = 16  # in parallel
NAMESPACES_MAX = 2000  # that are tried for a kind

_NAMESPACED = {kind.struct for kind in KINDS if kind.namespaced}
# What an answer without all objects of a kind lacks.
MEANINGS: dict[str, str] = {
    "Namespace": "other namespaces are not looked into, with -A neither, unless -n names one",
    "Node": "where pods would run is unknown",
    "DeviceClass": "which devices requests may have is unknown",
    "ResourceSlice": "which devices there are is unknown",
    "Pod": "how much room other pods take is unknown",
    "ResourceClaim": "which devices other claims hold is unknown",
    "PersistentVolumeClaim": "whether pods can use their volume claims is unknown",
    "ResourceQuota": "quotas that refuse pods or claims are unknown",
}


class Live(NamedTuple):
    """The live cluster of a kubeconfig."""

    access: RestConfig | ClientError  # how to reach it, or why that is unknown
    namespace: str = "default"  # that of the context, unless another was named

    def give(self, intake: Taker) -> None:
        """Pass on all relevant objects; record a cluster that cannot be reached."""
        try:
            if isinstance(self.access, ClientError):
                raise self.access
            found = asyncio.run(_read_cluster(self.access, self.namespace))
        except ClientError as error:
            intake.unreadable.append(f"cluster: {error}")
            intake.unread += (UnreadKind(each.__name__, _obstacle(error)) for each in FIELDS)
            return
        give_values(found.values, intake, self.access.server)
        intake.unread += found.unread
        intake.unreadable += (f"cluster: {error}" for error in found.failures)
        refused = [each for each in found.unread if each.obstacle is Obstacle.FORBIDDEN]
        if refused:
            intake.add_concerns([_concern(refused)])


def give_values(values: Iterable[Any], intake: Taker, server: str) -> None:
    """Pass on objects; record those of which the server says that they are of an unknown kind."""
    for value in values:
        try:
            intake.add_object(value, server)
        except ApiError as error:
            intake.unreadable.append(f"cluster: {type(value).__name__}: {error}")


def find_live(kubeconfig: str, context: str, namespace: str | None) -> Live:
    """Return the cluster that kubectl is configured for."""
    try:
        access = load_rest_config(kubeconfig, context=context)
    except ClientError as error:
        return Live(error, namespace or "default")
    return Live(access, namespace or access.namespace)


class Found(NamedTuple):
    """The objects that could be read from a cluster, and what could not."""

    values: tuple[Any, ...]
    unread: tuple[UnreadKind, ...]
    failures: tuple[str, ...] = ()  # of the connection


async def _read_cluster(access: RestConfig, namespace: str) -> Found:
    async with http_client(access) as client:
        reader = ClusterReader(client, dict.fromkeys((namespace, access.namespace)))
        return await reader.found()


class ClusterReader:
    """Reads all kinds of a cluster, as far as permissions allow."""

    def __init__(self, client: ApiClient, namespaces: Iterable[str]) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)  # the known namespaces
        self._turns = asyncio.Semaphore(REQUESTS_MAX)
        self._failures: dict[str, None] = {}
        self._lost: ClientError | None = None  # with the connection; nothing is asked then

    async def found(self) -> Found:
        """Return all readable objects, or raise ClientError if nothing could be read."""
        structs = list(FIELDS)
        answers = await asyncio.gather(*(self._list(struct) for struct in structs))
        whole = dict(zip(structs, answers, strict=True))
        known = whole[Namespace]
        if isinstance(known, tuple):
            names = (each.metadata.name for each in known)
            self._namespaces = tuple(dict.fromkeys((*self._namespaces, *names)))[:NAMESPACES_MAX]
        values: list[Any] = []
        unread: list[UnreadKind] = []
        for struct, answer in whole.items():
            if isinstance(answer, tuple):
                values += answer
            else:
                part = await self._by_namespace(struct)
                values += (value for listed_there in part.values() for value in listed_there)
                unread.append(UnreadKind(struct.__name__, _obstacle(answer), tuple(part)))
        errors = [each for each in answers if isinstance(each, ClientError)]
        if len(errors) == len(structs) and not any(each.namespaces for each in unread):
            raise self._lost or errors[0]
        return Found(tuple(values), tuple(unread), tuple(self._failures))

    async def _by_namespace(self, struct: type[Any]) -> dict[str, tuple[Any, ...]]:
        """Return the objects of a kind in the namespaces where they may be listed."""
        if struct is Namespace:
            return await self._namespace_objects()
        if struct not in _NAMESPACED:
            return {}
        spaces = self._namespaces
        answers = await asyncio.gather(*(self._list(struct, space) for space in spaces))
        pairs = zip(spaces, answers, strict=True)
        return {space: answer for space, answer in pairs if isinstance(answer, tuple)}

    async def _namespace_objects(self) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for name in self._namespaces:
            try:
                value = await self._client.get(Namespace, "", name)
            except ClientError as error:
                self._note(error)
                continue
            found[name] = () if value is None else (value,)
        return found

    async def _list(self, struct: type[Any], namespace: str = "") -> tuple[Any, ...] | ClientError:
        """Return all objects of a kind; none if the server does not have the kind."""
        async with self._turns:
            if self._lost is not None:
                return self._lost
            try:
                return tuple((await list_all(self._client, struct, namespace)).values)
            except NotFoundError:  # the server does not have the kind
                return ()
            except ClientError as error:
                self._note(error)
                return error

    def _note(self, error: ClientError) -> None:
        """Remember a failure; a refusal is none."""
        if isinstance(error, ForbiddenError):
            return
        self._failures[str(error)] = None
        is_lost = isinstance(error, UnauthorizedError | UnavailableError) and error.code in (0, 401)
        if is_lost and self._lost is None:
            self._lost = error


def _obstacle(error: ClientError) -> Obstacle:
    return Obstacle.FORBIDDEN if isinstance(error, ForbiddenError) else Obstacle.FAILED


def _concern(refused: list[UnreadKind]) -> Concern:
    """Return one line about what may not be read and how that affects the answer."""
    ordered = sorted(refused, key=lambda each: each.namespaces)
    by_extent = groupby(ordered, lambda each: each.namespaces)
    extents = "; ".join(
        _extent(spaces, [each.kind for each in group]) for spaces, group in by_extent
    )
    found = (MEANINGS[each.kind] for each in refused if each.kind in MEANINGS)
    meaning = "; ".join(dict.fromkeys(found)) or "the answer does not consider them"
    return Concern("forbidden-kinds", f"not all of the cluster may be read ({extents})", meaning)


def _extent(namespaces: tuple[str, ...], names: list[str]) -> str:
    kinds = ", ".join(names)
    if not namespaces:
        return f"no {kinds}"
    noun = "namespace" if len(namespaces) == 1 else "namespaces"
    return f"{kinds} in {noun} {listed(namespaces)} only"
