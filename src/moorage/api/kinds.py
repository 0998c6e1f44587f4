"""Kinds of objects: names, struct and stored version of each apiVersion and kind."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile

from msgspec import Struct

from moorage.api.errors import DecodeError
from moorage.api.names import dns1123_subdomain

NEAR_MIN = 0.8  # similarity above which a name counts as mistyped
_KIND_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_PROTECTED_GROUPS = (".k8s.io", ".kubernetes.io")  # nobody may use them without approval
_VERSION = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


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
    is_asked: bool = False  # answered when it is created, and never stored
    list_name: str = ""  # the kind of lists, if it is not the usual one

    @property
    def list_kind(self) -> str:
        """The kind of lists."""
        return self.list_name or f"{self.name}List"

    @property
    def group(self) -> str:
        """The API group; empty for core."""
        group, slash, _ = self.api_version.rpartition("/")
        return group if slash else ""

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]


def declare_kind(
    struct: type[Struct],
    plural: str,
    *short_names: str,
    namespaced: bool = True,
    has_status: bool = False,
    is_asked: bool = False,
) -> Kind:
    """Return the kind of a struct, which has one version."""
    api_version: str = struct().api_version  # type: ignore[attr-defined]
    return Kind(
        api_version=api_version,
        name=struct.__name__,
        plural=plural,
        namespaced=namespaced,
        struct=struct,
        hub_version=api_version,
        has_status=has_status,
        short_names=short_names,
        is_asked=is_asked,
    )


def declare_versions(
    structs: Mapping[str, type[Struct]],
    plural: str,
    *,
    hub_version: str,
    namespaced: bool = False,
    has_status: bool = False,
    extension_in: str = "",
) -> Iterator[Kind]:
    """Yield a kind in all its versions; `extension_in` is one that Kubernetes does not have."""
    for api_version, struct in structs.items():
        yield Kind(
            api_version=api_version,
            name=struct.__name__,
            plural=plural,
            namespaced=namespaced,
            struct=struct,
            hub_version=hub_version,
            has_status=has_status,
            is_extension=api_version == extension_in,
        )


class Catalogue:
    """Kinds by apiVersion and name; `others` are kinds of Kubernetes that Moorage cannot read."""

    def __init__(
        self, kinds: Iterable[Kind], others: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self._kinds = {(kind.api_version, kind.name): kind for kind in kinds}
        self._others = {(v, name) for v, names in (others or {}).items() for name in names}

    def find(self, api_version: str, name: str, *, extensions: bool = True) -> Kind:
        """Return the kind, or raise DecodeError with the nearest names that exist."""
        kind = self._kinds.get((api_version, name))
        if kind is None or (kind.is_extension and not extensions):
            raise DecodeError(self._unknown(api_version, name, extensions=extensions), ("kind",))
        return kind

    def is_foreign(self, api_version: str, name: str) -> bool:
        """Return whether a server may have a kind that Moorage cannot read.

        These are the other kinds of Kubernetes, and custom resources: kinds of groups that are
        not Kubernetes'. A kind of ours in a group that looks mistyped is no custom resource.
        """
        if (api_version, name) in self._others:
            return True
        group, _, version = api_version.rpartition("/")
        if "." not in group or dns1123_subdomain(group) or not _VERSION.fullmatch(version):
            return False  # Kubernetes keeps groups without a dot for itself
        if not _KIND_NAME.fullmatch(name) or group in self._groups:
            return False
        homes = {_group(each) for each, other in self._kinds if other == name}
        is_protected = group.endswith(_PROTECTED_GROUPS)
        return not any(is_protected or _differ_by_a_slip(group, home) for home in homes)

    @cached_property
    def _groups(self) -> frozenset[str]:
        return frozenset(_group(version) for version, _ in (*self._kinds, *self._others))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._kinds

    def _unknown(self, api_version: str, name: str, *, extensions: bool) -> str:
        if self.is_foreign(api_version, name):
            return f'kind "{name}" in version "{api_version}" is not known here'
        fact = f'no matches for kind "{name}" in version "{api_version}"'
        known = [
            *(
                (v, n)
                for (v, n), kind in self._kinds.items()
                if extensions or not kind.is_extension
            ),
            *sorted(self._others),
        ]
        versions = [version for version, other in known if other == name]
        if versions:
            return f"{fact}; {name} exists in {', '.join(versions)}"
        near = _nearest(name, {other for _, other in known})
        return f"{fact}; did you mean {near}?" if near else fact


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _differ_by_a_slip(text: str, other: str) -> bool:
    """Return whether one letter is missing, added, mistaken, or swapped with the next one."""
    start = _shared(text, other)
    rest, other_rest = text[start:], other[start:]
    end = _shared(rest[::-1], other_rest[::-1])
    rest, other_rest = rest[: len(rest) - end], other_rest[: len(other_rest) - end]
    is_swapped = len(rest) == 2 and rest == other_rest[::-1]
    return is_swapped or max(len(rest), len(other_rest)) <= 1


def _shared(text: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = zip(text, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar, if any is; case does not count."""
    by_lower = {each.lower(): each for each in sorted(known)}
    near = difflib.get_close_matches(name[:253].lower(), by_lower, n=1, cutoff=NEAR_MIN)
    return by_lower[near[0]] if near else None
