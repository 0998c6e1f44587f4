"""What is served: each resource with its versions, its parts and what selects its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from mooring.api.catalogue import SERVED
from mooring.api.core import Event, Node, Pod
from mooring.api.kinds import Kind
from mooring.api.resource.v1 import ResourceSlice
from mooring.apiserver.status import About

Fields = Mapping[str, str]  # what field selectors may name, and the object's values


class Resource(Struct, frozen=True, eq=False, dict=True):
    """One resource of a group, in all versions in which it is served; what follows is kept."""

    group: str
    plural: str
    kinds: Mapping[str, Kind]  # by version
    subresources: frozenset[str]

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
    def ttl_s(self) -> int | None:
        """How long an object is kept, if not for ever."""
        return EVENT_TTL_S if self.plural == "events" else None

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

    @cached_property
    def selectable_fields(self) -> frozenset[str]:
        """The fields that selectors may name."""
        return frozenset(self.fields_of(self.hub_struct()))

    def fields_of(self, value: Any) -> Fields:
        """Return what field selectors can ask of an object."""
        fields = {"metadata.name": value.metadata.name}
        if self.namespaced:
            fields["metadata.namespace"] = value.metadata.namespace
        more = _FIELDS.get(type(value))
        return fields if more is None else {**fields, **more(value)}


class Resources:
    """All that a server serves."""

    def __init__(self, kinds: Iterable[Kind] = SERVED) -> None:
        found: dict[tuple[str, str], dict[str, Kind]] = {}
        for kind in kinds:
            found.setdefault((kind.group, kind.plural), {})[kind.version] = kind
        self._resources = {
            key: Resource(*key, versions, _subresources(versions.values()))
            for key, versions in found.items()
        }

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource, if it is served in the version."""
        resource = self._resources.get((group, plural))
        return resource if resource is not None and version in resource.kinds else None

    def of(self, group: str, plural: str) -> Resource:
        """Return a resource that is known to be there."""
        return self._resources[group, plural]

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources.values())

    def versions(self, group: str) -> list[str]:
        """Return the versions in which anything of a group is served."""
        found = {
            version for r in self._resources.values() if r.group == group for version in r.kinds
        }
        return sorted(found)


EVENT_TTL_S = 3600

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
    "Pod": ("binding", "eviction"),
    "Namespace": ("finalize",),
}


def _subresources(kinds: Iterable[Kind]) -> frozenset[str]:
    names: set[str] = set()
    for kind in kinds:
        names.update(_MORE_SUBRESOURCES.get(kind.name, ()))
        if kind.has_status:
            names.add("status")
    return frozenset(names)


# --- what field selectors see ---------------------------------------------------------------------


def _of_slice(value: ResourceSlice) -> Fields:
    spec = value.spec
    return {
        "spec.nodeName": spec.node_name or "",
        "spec.driver": spec.driver,
        "spec.pool.name": spec.pool.name,
    }


def _of_pod(value: Pod) -> Fields:
    spec, status = value.spec, value.status
    return {
        "spec.nodeName": spec.node_name,
        "spec.restartPolicy": spec.restart_policy,
        "spec.schedulerName": spec.scheduler_name,
        "spec.serviceAccountName": spec.service_account_name,
        "spec.hostNetwork": str(bool(spec.host_network)).lower(),
        "status.phase": status.phase,
        "status.nominatedNodeName": status.nominated_node_name,
    }


def _of_node(value: Node) -> Fields:
    return {"spec.unschedulable": str(bool(value.spec.unschedulable)).lower()}


def _of_event(value: Event) -> Fields:
    about = value.involved_object
    return {
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace,
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": about.api_version,
        "involvedObject.resourceVersion": about.resource_version,
        "involvedObject.fieldPath": about.field_path,
        "reason": value.reason,
        "reportingComponent": value.reporting_controller or value.source.component,
        "source": value.source.component or value.reporting_controller,
        "type": value.type,
    }


_FIELDS: Mapping[type, Callable[[Any], Fields]] = {
    ResourceSlice: _of_slice,
    Pod: _of_pod,
    Node: _of_node,
    Event: _of_event,
}
