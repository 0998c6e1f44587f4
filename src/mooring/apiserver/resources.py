"""What is served: each resource with its versions, its parts and what selects its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from mooring.api.catalogue import SERVED
from mooring.api.kinds import Kind
from mooring.apiserver import selectable
from mooring.apiserver.selectable import Fields
from mooring.apiserver.status import About

EVENT_TTL_S = 3600


class Resource(Struct, frozen=True, eq=False, dict=True):
    """One resource of a group, in all versions in which it is served; what follows is kept."""

    group: str
    plural: str
    kinds: Mapping[str, Kind]  # by version
    subresources: frozenset[str]
    ttl_s: int | None = None  # how long an object is kept, if not for ever

    @cached_property
    def any_kind(self) -> Kind:
        """One of the kinds; what they have in common can be asked of it."""
        return next(iter(self.kinds.values()))

    @cached_property
    def namespaced(self) -> bool:
        """Whether objects are in namespaces."""
        return self.any_kind.namespaced

    @cached_property
    def hub_version(self) -> str:
        """The version that objects are stored in."""
        return self.any_kind.hub_version

    @cached_property
    def hub_struct(self) -> type[Struct]:
        """What objects are stored as."""
        return _HUBS[self.hub_version, self.any_kind.name].struct

    @cached_property
    def returns_deleted(self) -> bool:
        """Whether who deletes an object is given it, and not only told."""
        return self.plural in _RETURNED

    @cached_property
    def is_made_by_update(self) -> bool:
        """Whether an update of what is not there creates it."""
        return self.plural in ("events", "leases")

    @cached_property
    def about(self) -> About:
        """What messages call it."""
        return About(self.plural, self.any_kind.name, self.group)

    @cached_property
    def prefix(self) -> str:
        """The beginning of the keys of its objects."""
        group = self.hub_version.rpartition("/")[0]  # events of both groups are the same objects
        return f"/registry/{group or 'core'}/{self.plural}/"

    def key(self, namespace: str, name: str) -> str:
        """Return the key of an object."""
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else f"{self.prefix}{name}"

    def below(self, namespace: str) -> str:
        """Return the beginning of the keys of a namespace; of all without one."""
        return f"{self.prefix}{namespace}/" if namespace else self.prefix

    def fields_of(self, value: Any) -> Fields:
        """Return what field selectors can ask of an object."""
        return selectable.fields_of(value, namespaced=self.namespaced)


class Resources:
    """All that a server keeps, and what it serves of that."""

    def __init__(
        self,
        kinds: Iterable[Kind] = SERVED,
        *,
        serves: Callable[[Kind], bool] = lambda _: True,
        event_ttl_s: int | None = EVENT_TTL_S,
    ) -> None:
        listed = tuple(kinds)
        self._all = _by_name(listed, event_ttl_s)
        self._resources = _by_name(filter(serves, listed), event_ttl_s)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource, if it is served in the version."""
        resource = self._resources.get((group, plural))
        return resource if resource is not None and version in resource.kinds else None

    def of(self, group: str, plural: str) -> Resource:
        """Return a resource that is known to be there, served or not."""
        return self._all[group, plural]

    def all(self) -> Iterator[Resource]:
        """Give all that may be stored, served or not."""
        return iter(self._all.values())

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources.values())

    def versions(self, group: str) -> list[str]:
        """Return the versions in which anything of a group is served."""
        found = {
            version for r in self._resources.values() if r.group == group for version in r.kinds
        }
        return sorted(found)


_RETURNED = frozenset(
    {
        "deviceclasses",
        "namespaces",
        "pods",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourcepoolstatusrequests",
        "resourcequotas",
        "resourceslices",
        "serviceaccounts",
    }
)

_HUBS = {(kind.api_version, kind.name): kind for kind in SERVED}

# Besides the status, which is told by the kind.
_MORE_SUBRESOURCES = {
    "Deployment": ("scale",),
    "Pod": ("attach", "binding", "eviction", "exec", "log"),
    "ReplicaSet": ("scale",),
    "StatefulSet": ("scale",),
    "Namespace": ("finalize",),
    "ServiceAccount": ("token",),
}


def _by_name(kinds: Iterable[Kind], event_ttl_s: int | None) -> dict[tuple[str, str], Resource]:
    found: dict[tuple[str, str], dict[str, Kind]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.plural), {})[kind.version] = kind
    return {
        key: Resource(
            *key,
            versions,
            _subresources(versions.values()),
            event_ttl_s if key[1] == "events" else None,
        )
        for key, versions in found.items()
    }


def _subresources(kinds: Iterable[Kind]) -> frozenset[str]:
    names: set[str] = set()
    for kind in kinds:
        names.update(_MORE_SUBRESOURCES.get(kind.name, ()))
        if kind.has_status:
            names.add("status")
    return frozenset(names)
