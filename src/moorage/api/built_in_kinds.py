"""All built-in kinds of Kubernetes 1.37, and what Moorage does with their objects.

`built_in_kinds.txt` has a line per kind:

    line:     KIND api_version("," api_version)* role ["warns"] " -- " words
    role:     "acts"      something here reads the objects and does what they ask for
              "data"      they are stored, served and watched, and nothing here acts on them
              "refused"   the server does not have the kind
    warns:    the answer to a creation says that nothing acts on the object: its writer relies on it

A kind that is not in the catalogue is refused, whatever its line says. The reference page of kinds,
the kinds that only other servers have, and a test that keeps the table true all derive from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pkgutil import get_data
from typing import NamedTuple

from moorage.api.kinds import Kind


class Role(StrEnum):
    """What Moorage does with the objects of a kind."""

    ACTS = "acts"
    DATA = "data"
    REFUSED = "refused"


class BuiltInKind(NamedTuple):
    """A kind of Kubernetes in all versions that it serves."""

    name: str
    api_versions: tuple[str, ...]
    role: Role
    words: str  # who acts on it, or why nobody does
    warns: bool = False


def _kinds() -> Iterator[BuiltInKind]:
    text = get_data("moorage.api", "built_in_kinds.txt")  # importlib.resources takes 20 ms
    assert text is not None
    for line in text.decode().splitlines():
        if line and not line.startswith("#"):
            declared, _, words = line.partition(" -- ")
            name, versions, role, *flags = declared.split()
            yield BuiltInKind(name, tuple(versions.split(",")), Role(role), words, bool(flags))


BUILT_IN_KINDS: tuple[BuiltInKind, ...] = tuple(_kinds())


# --- deprecated versions --------------------------------------------------------------------------

# "GROUP/VERSION" or "VERSION KIND": since when, until when, and what replaces it ("" if nothing).
_DEPRECATED = {
    "admissionregistration.k8s.io/v1alpha1": ("1.35", "1.38", ""),
    "admissionregistration.k8s.io/v1beta1": ("1.37", "1.40", "admissionregistration.k8s.io/v1"),
    "resource.k8s.io/v1beta1": ("1.35", "1.38", ""),
    "resource.k8s.io/v1beta2": ("1.36", "1.39", ""),
    "resource.k8s.io/v1alpha3 DeviceTaintRule": ("1.36", "1.39", ""),
}
_OTHERS = {
    "v1 Endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
_CURRENT = {  # kinds of deprecated versions that have no newer one
    "resource.k8s.io/v1beta2 DeviceTaintRule",
    "resource.k8s.io/v1beta2 ResourcePoolStatusRequest",
}


def deprecation_of(kind: Kind) -> str:
    """Return the warning for whoever uses a version of a kind; "" if it is not deprecated."""
    name = f"{kind.api_version} {kind.name}"
    if name in _OTHERS or name in _CURRENT:
        return _OTHERS.get(name, "")
    found = _DEPRECATED.get(name) or _DEPRECATED.get(kind.api_version)
    if found is None:
        return ""
    since, until, newer = found
    hint = f"; use {newer} {kind.name}" if newer else ""
    return f"{name} is deprecated in v{since}+, unavailable in v{until}+{hint}"
