"""What a viewer may see: kinds, everywhere or in some namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from moorage.api.catalogue import KINDS
from moorage.api.core.namespace import Event
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.insight.snapshot.unread import Obstacle, Unread, UnreadKind

_PLURALS: Final = {kind.name: kind.plural for kind in KINDS if kind.struct in {*FIELDS, Event}}
_SHOWN: Final = {struct.__name__ for struct in FIELDS}


class Rights(Struct, frozen=True):
    """The kinds that a viewer may list, with the namespaces where that is restricted.

    Kinds that are not in `namespaces` may be listed everywhere.
    """

    namespaces: tuple[tuple[str, frozenset[str]], ...] = ()

    def allow(self, kind: str, namespace: str) -> bool:
        """Return whether the viewer may see objects of a kind in a namespace."""
        spaces = self._by_kind.get(kind)
        return spaces is None or namespace in spaces

    def visible(self, objects: Iterable[Any]) -> Iterator[Any]:
        """Yield the objects that the viewer may see."""
        limited = self._by_kind
        for value in objects:
            spaces = limited.get(value.kind)
            if spaces is None or value.metadata.namespace in spaces:
                yield value

    @property
    def _by_kind(self) -> Mapping[str, frozenset[str]]:
        return dict(self.namespaces)

    def missing(self, kinds: Iterable[str]) -> list[str]:
        """Return the plural names of those of some kinds that may not be listed everywhere."""
        limited = self._by_kind
        return [_PLURALS[kind] for kind in kinds if kind in limited]

    @property
    def unread(self) -> Unread:
        """What the viewer may not see, as what could not be read."""
        return Unread(
            tuple(
                UnreadKind(kind, Obstacle.FORBIDDEN, tuple(sorted(spaces)))
                for kind, spaces in self.namespaces
                if kind in _SHOWN
            )
        )

    @property
    def forbidden(self) -> list[str]:
        """The plural names of the kinds that may not be listed everywhere."""
        return sorted(_PLURALS.get(kind, kind.lower()) for kind, _ in self.namespaces)


ALL: Final = Rights()
