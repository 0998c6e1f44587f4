"""All built-in kinds of Kubernetes 1.37, and what Mooring does with their objects.

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


class Role(StrEnum):
    """What Mooring does with the objects of a kind."""

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
    text = get_data("mooring.api", "built_in_kinds.txt")  # importlib.resources takes 20 ms
    assert text is not None
    for line in text.decode().splitlines():
        if line and not line.startswith("#"):
            declared, _, words = line.partition(" -- ")
            name, versions, role, *flags = declared.split()
            yield BuiltInKind(name, tuple(versions.split(",")), Role(role), words, bool(flags))


BUILT_IN_KINDS: tuple[BuiltInKind, ...] = tuple(_kinds())
