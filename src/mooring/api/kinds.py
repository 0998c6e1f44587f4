"""The catalogue of kinds: what an apiVersion and kind are called, made of and stored as."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from mooring.api.errors import DecodeError


class Kind(Struct, frozen=True, kw_only=True):
    """One kind in one version."""

    api_version: str
    name: str
    plural: str
    namespaced: bool
    struct: type[Struct]
    hub_version: str  # the version that objects are stored in
    has_status: bool = False
    short_names: tuple[str, ...] = ()
    is_extension: bool = False  # Kubernetes does not have it in this version
    is_asked: bool = False  # it is answered when it is created, and never stored

    @property
    def group(self) -> str:
        """The API group; empty for core."""
        group, slash, _ = self.api_version.rpartition("/")
        return group if slash else ""

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]

    @property
    def singular(self) -> str:
        """The name in lower case, as kubectl takes it."""
        return self.name.lower()


def asked_kind(
    struct: type[Struct], plural: str, api_version: str, *, namespaced: bool = False
) -> Kind:
    """Return a kind that is answered when it is created, and never stored."""
    return Kind(
        api_version=api_version,
        name=struct.__name__,
        plural=plural,
        namespaced=namespaced,
        struct=struct,
        hub_version=api_version,
        is_asked=True,
    )


class Catalogue:
    """Kinds by apiVersion and name."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds = {(kind.api_version, kind.name): kind for kind in kinds}

    def find(self, api_version: str, name: str, *, extensions: bool = True) -> Kind:
        """Return the kind, or raise DecodeError with the nearest names that exist."""
        kind = self._kinds.get((api_version, name))
        if kind is None or (kind.is_extension and not extensions):
            raise DecodeError(self._unknown(api_version, name, extensions=extensions), ("kind",))
        return kind

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._kinds

    def _unknown(self, api_version: str, name: str, *, extensions: bool) -> str:
        fact = f'no matches for kind "{name}" in version "{api_version}"'
        versions = [
            kind.api_version
            for kind in self._kinds.values()
            if kind.name == name and (extensions or not kind.is_extension)
        ]
        if versions:
            return f"{fact}; {name} exists in {', '.join(versions)}"
        names = sorted({kind.name for kind in self._kinds.values()})
        near = difflib.get_close_matches(name, names, n=1)
        return f"{fact}; did you mean {near[0]}?" if near else fact
