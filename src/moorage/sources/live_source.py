"""A running cluster as a source of objects.

Many users may read only a few namespaces. So a kind that they may not list in the whole cluster is
listed in each known namespace: in all of them if namespaces may be listed, otherwise in that of the
kubeconfig's context and in the one that was named.

    # gap: a kind that could not be read in all namespaces, and those where it could
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from moorage.api.catalogue import KINDS
from moorage.api.core import Namespace, Node, Pod
from moorage.api.core.namespace import ResourceQuota
from moorage.api.core.persistent_volume import PersistentVolumeClaim
from moorage.api.errors import ApiError
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import RestConfig, http_client, load_rest_config
from moorage.client.contract import list_all
from moorage.client.errors import ClientError, ForbiddenError, NotFoundError
from moorage.insight.messages import Concern, listed
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.sources.cluster_sources import Taker

REQUESTS_MAX = 16  # in parallel
NAMESPACES_MAX = 2000  # that are tried for a kind

_NAMESPACED = {kind.struct for kind in KINDS if kind.namespaced}
# What an answer without all objects of a kind lacks.
MEANINGS: dict[type[Any], str] = {
    Namespace: "other namespaces are not looked into, with -A neither, unless -n names one",
    Node: "without its nodes no pod can be placed",
    DeviceClass: "requests find no device without their class",
    ResourceSlice: "without its slices there are no devices",
    Pod: "room that other pods take counts as free",
    ResourceClaim: "devices that other claims hold count as free",
    PersistentVolumeClaim: "pods that use volume claims stay pending",
    ResourceQuota: "quotas that refuse pods or claims are not known",
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
            return
        give_values(found.values, intake, self.access.server)
        intake.unread |= {gap.struct.__name__: gap.namespaces for gap in found.gaps}
        if found.gaps:
            intake.add_concerns([_concern(found.gaps)])


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


class Gap(NamedTuple):
    """A kind that could not be read in all namespaces."""

    struct: type[Any]
    namespaces: tuple[str, ...]  # where it could be read


class Found(NamedTuple):
    """The objects that could be read from a cluster, and what could not."""

    values: tuple[Any, ...]
    gaps: tuple[Gap, ...]


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

    async def found(self) -> Found:
        """Return all readable objects, or raise ForbiddenError if nothing may be read."""
        structs = list(FIELDS)
        answers = await asyncio.gather(*(self._list(struct) for struct in structs))
        whole = dict(zip(structs, answers, strict=True))
        known = whole[Namespace]
        if isinstance(known, tuple):
            names = (each.metadata.name for each in known)
            self._namespaces = tuple(dict.fromkeys((*self._namespaces, *names)))[:NAMESPACES_MAX]
        values: list[Any] = []
        gaps: list[Gap] = []
        for struct, answer in whole.items():
            if isinstance(answer, tuple):
                values += answer
            else:
                part = await self._by_namespace(struct)
                values += (value for listed_there in part.values() for value in listed_there)
                gaps.append(Gap(struct, tuple(part)))
        refusals = [each for each in answers if isinstance(each, ForbiddenError)]
        if len(refusals) == len(structs) and not any(gap.namespaces for gap in gaps):
            raise refusals[0]
        return Found(tuple(values), tuple(gaps))

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
            except ForbiddenError:
                continue
            found[name] = () if value is None else (value,)
        return found

    async def _list(
        self, struct: type[Any], namespace: str = ""
    ) -> tuple[Any, ...] | ForbiddenError:
        """Return all objects of a kind; none if the server does not have the kind."""
        async with self._turns:
            try:
                return tuple((await list_all(self._client, struct, namespace)).values)
            except NotFoundError:  # the server does not have the kind
                return ()
            except ForbiddenError as error:
                return error


def _concern(gaps: tuple[Gap, ...]) -> Concern:
    """Return one line about what could not be read and how that affects the answer."""
    by_extent = groupby(sorted(gaps, key=lambda gap: gap.namespaces), lambda gap: gap.namespaces)
    extents = "; ".join(
        _extent(spaces, [gap.struct for gap in group]) for spaces, group in by_extent
    )
    meaning = "; ".join(dict.fromkeys(_meanings(gaps))) or "the answer does not consider them"
    return Concern("forbidden-kinds", f"not all of the cluster may be read ({extents})", meaning)


def _extent(namespaces: tuple[str, ...], structs: list[type[Any]]) -> str:
    kinds = ", ".join(struct.__name__ for struct in structs)
    if not namespaces:
        return f"no {kinds}"
    noun = "namespace" if len(namespaces) == 1 else "namespaces"
    return f"{kinds} in {noun} {listed(namespaces)} only"


def _meanings(gaps: tuple[Gap, ...]) -> Iterator[str]:
    for gap in gaps:
        if gap.struct in MEANINGS:
            yield MEANINGS[gap.struct]
