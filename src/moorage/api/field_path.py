"""Where in an object a fact was found: `spec.devices.requests[0].name`.

A Path is a linked list from the leaf to the root, so making a child is one small allocation and
the text is only put together when somebody asks for it. Segments: a str is a field, an int an
index of a list, a Key the key of a map (`attributes[model]`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class MapKey(NamedTuple):
    """The key of a map entry, as a path segment."""

    name: str


Segment = str | int | MapKey
Place = tuple[Segment, ...]  # from the root to the leaf


class Path:
    """An immutable path into an object; `str(path)` is the form Kubernetes prints."""

    __slots__ = ("parent", "segment")

    def __init__(self, segment: Segment, parent: Path | None = None) -> None:
        self.segment = segment
        self.parent = parent

    def child(self, *names: str) -> Path:
        """Return the path of a field below this one."""
        path = self
        for name in names:
            path = Path(name, path)
        return path

    def index(self, position: int) -> Path:
        """Return the path of a list element below this one."""
        return Path(position, self)

    def key(self, name: str) -> Path:
        """Return the path of a map entry below this one."""
        return Path(MapKey(name), self)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments from the root to the leaf."""
        found: list[Segment] = []
        node: Path | None = self
        while node is not None:
            found.append(node.segment)
            node = node.parent
        return tuple(reversed(found))

    def __str__(self) -> str:
        return render(self.segments)

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self.segments == other.segments

    def __hash__(self) -> int:
        return hash(self.segments)


def root(name: str) -> Path:
    """Return the path of a top-level field."""
    return Path(name)


def path_of(segments: Iterable[Segment]) -> Path:
    """Return the path with these segments, of which there is at least one."""
    path: Path | None = None
    for segment in segments:
        path = Path(segment, path)
    assert path is not None
    return path


def render(segments: tuple[Segment, ...]) -> str:
    """Return the printed form of path segments."""
    text = ""
    for segment in segments:
        match segment:
            case MapKey(name):
                text += f"[{name}]"
            case int():
                text += f"[{segment}]"
            case _:
                text += f".{segment}" if text else segment
    return text
