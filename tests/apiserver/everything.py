"""All kinds as a server serves them."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.catalogue import SERVED
from mooring.api.kinds import Kind
from mooring.apiserver.resources import Resource

_MORE = {"Pod": ("binding", "eviction"), "ServiceAccount": ("token",), "Namespace": ("finalize",)}


def everything(*, extensions: bool = True) -> list[Resource]:
    """Return every resource, with or without what Kubernetes does not have."""
    found: dict[tuple[str, str], dict[str, Kind]] = {}
    for kind in SERVED:
        if extensions or not kind.is_extension:
            found.setdefault((kind.group, kind.plural), {})[kind.version] = kind
    return [Resource(*key, kinds, _subresources(kinds)) for key, kinds in found.items()]


def _subresources(kinds: Mapping[str, Kind]) -> frozenset[str]:
    names: set[str] = set()
    for kind in kinds.values():
        names.update(_MORE.get(kind.name, ()))
        if kind.has_status:
            names.add("status")
    return frozenset(names)
