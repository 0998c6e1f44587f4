"""What could not be read of a cluster: whether it has such objects is unknown.

A kind is read completely, in some namespaces only, or not at all. Whoever states that there is no
object, or that nobody uses something, asks here first; what is not known is named, with the right
that would show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from moorage.api.catalogue import KINDS
from moorage.insight.messages import listed

_PLURALS: Final = {kind.name: kind.plural for kind in KINDS}
SNAPSHOT_ADVICE: Final = "an archive of moor snapshot, which --on reads"


class Obstacle(StrEnum):
    """Why objects could not be read."""

    FORBIDDEN = "forbidden"
    FAILED = "failed"  # the server did not answer, or not so that one understands it
    ABSENT = "absent"  # a dump leaves the kind out, though other objects show that there are some


class UnreadKind(Struct, frozen=True, rename="camel"):
    """A kind that could not be read, except in some namespaces."""

    kind: str
    obstacle: Obstacle
    namespaces: tuple[str, ...] = ()  # where it was read

    @property
    def resource(self) -> str:
        """The name of the kind in paths and rights."""
        return resource_of(self.kind)


class Unread(Struct, frozen=True):
    """The kinds that could not all be read."""

    kinds: tuple[UnreadKind, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything could not be read."""
        return bool(self.kinds)

    @property
    def resources(self) -> list[str]:
        """The names of the kinds in paths and rights, sorted."""
        return sorted(each.resource for each in self.kinds)

    def hidden(self, kinds: Iterable[str], namespace: str = "") -> tuple[UnreadKind, ...]:
        """Return which of some kinds are not known: in a namespace, or anywhere."""
        if not self.kinds:
            return ()
        found = {each.kind: each for each in self.kinds}
        return tuple(
            found[kind]
            for kind in kinds
            if kind in found and (not namespace or namespace not in found[kind].namespaces)
        )

    def knows(self, kind: str, namespace: str = "") -> bool:
        """Return whether all objects of a kind were read: in a namespace, or everywhere."""
        return not self.hidden((kind,), namespace)


NOTHING_UNREAD: Final = Unread()


def resource_of(kind: str) -> str:
    """Return the name of a kind in paths and rights: resourceslices."""
    return _PLURALS.get(kind, kind.lower())


def unread_tree(unread: Unread) -> dict[str, Any]:
    """Return what could not be read as JSON, under `unread`; nothing if all was."""
    if not unread:
        return {}
    return {
        "unread": [
            {
                "resource": each.resource,
                "obstacle": each.obstacle.value,
                "readNamespaces": list(each.namespaces),
            }
            for each in unread.kinds
        ]
    }


def why_unread(hidden: Iterable[UnreadKind]) -> str:
    """Return which kinds could not be read, and why: to be followed by what is not known."""
    given = tuple(hidden)
    texts: list[str] = []
    for obstacle, verb in (
        (Obstacle.FORBIDDEN, "may not be read with these rights"),
        (Obstacle.FAILED, "could not be read from the cluster"),
        (Obstacle.ABSENT, "are not in the dump of the cluster"),
    ):
        resources = [each.resource for each in given if each.obstacle is obstacle]
        if resources:
            texts.append(f"{listed(resources)} {verb}")
    return " and ".join(texts)


def remedy_for(hidden: Iterable[UnreadKind]) -> str:
    """Return how to get to know it."""
    given = tuple(hidden)
    refused = [each.resource for each in given if each.obstacle is Obstacle.FORBIDDEN]
    absent = [each.resource for each in given if each.obstacle is Obstacle.ABSENT]
    if absent:
        return f"add them: kubectl get {','.join(absent)} -A -o yaml"
    if not refused:
        return "try again once the cluster answers"
    return f"ask an administrator for the right to list {listed(refused)}, or for {SNAPSHOT_ADVICE}"
