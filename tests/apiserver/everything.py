"""All kinds as a server serves them."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.catalogue import SERVED
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.apiserver.resources import Resource
from moorage.apiserver.runtime_config import RuntimeConfig

_MORE = {
    "CertificateSigningRequest": ("approval",),
    "Namespace": ("finalize",),
    "Pod": ("binding", "eviction"),
    "ServiceAccount": ("token",),
}


def everything(*, extensions: bool = True) -> list[Resource]:
    """Return every resource, with or without what Kubernetes does not have."""
    found: dict[tuple[str, str], dict[str, Kind]] = {}
    for kind in SERVED:
        if extensions or _is_kubernetes(kind):
            found.setdefault((kind.group, kind.plural), {})[kind.version] = kind
    return [Resource(*key, kinds, _subresources(kinds)) for key, kinds in found.items()]


def _is_kubernetes(kind: Kind) -> bool:
    """Return whether Kubernetes has a kind, and serves its version without being told to."""
    return not kind.is_extension and RuntimeConfig().serves(kind, Gates.parse())


def _subresources(kinds: Mapping[str, Kind]) -> frozenset[str]:
    names: set[str] = set()
    for kind in kinds.values():
        names.update(_MORE.get(kind.name, ()))
        if kind.has_status:
            names.add("status")
    return frozenset(names)
