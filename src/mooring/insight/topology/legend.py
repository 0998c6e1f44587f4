"""What colours and marks mean, below the picture: owners first, then what else is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mooring.insight.devices import State
from mooring.insight.topology.cells import MARK, MARKS, Mark, marks_of
from mooring.insight.topology.census import Census
from mooring.insight.topology.ink import filled, name, rectangle, words
from mooring.insight.topology.model import Item
from mooring.insight.topology.owners import Owner
from mooring.insight.topology.text import clean, counted, listed

OWNERS_MAX = 60
ENTRY_WIDTH = 276
ENTRY_HEIGHT = 36
KEY_HEIGHT = 22
KEY_GAP = 6
HEADING = 28
USERS_SHOWN = 1


class Key(NamedTuple):
    """A way to fill a device, and what it means."""

    look: str
    meaning: str


FREE = Key("free", "free")
SHARED = Key("free", "shareable: the bar shows what is taken")
CROSSED = Key("gone", "crossed out: unusable")
CORNER = Key("alarm", "red corner: tainted, or contradictory")
BLOCKED = Key("blocked", "blocked: others have what it needs")


def legend(
    items: Iterable[Item], census: Census, x: int, y: int, width: int, *, is_compact: bool
) -> Legend:
    """Return the legend, with its height."""
    elements: list[str] = []
    owners = list(census.owners)
    columns = max(width // ENTRY_WIDTH, 1)
    if owners:
        elements.append(words(x, y + 14, "Claims", "own strong bold s14"))
        y += HEADING
        for index, owner in enumerate(owners[:OWNERS_MAX]):
            row, column = divmod(index, columns)
            place = x + column * ENTRY_WIDTH, y + row * ENTRY_HEIGHT
            elements += _owner_entry(owner, census, *place)
        y += -(-min(len(owners), OWNERS_MAX) // columns) * ENTRY_HEIGHT
    if len(owners) > OWNERS_MAX:
        left = f"and {counted(len(owners) - OWNERS_MAX, 'claim')} more, not listed here"
        elements.append(words(x, y + 12, left, "own muted s12"))
        y += KEY_HEIGHT
    keys = list(_compact_keys(items) if is_compact else _keys(items))
    y += KEY_GAP
    for index, key in enumerate(keys):
        row, column = divmod(index, columns)
        elements.append(_key_entry(key, x + column * ENTRY_WIDTH, y + row * KEY_HEIGHT))
    return Legend("".join(elements), y + -(-len(keys) // columns) * KEY_HEIGHT)


class Legend(NamedTuple):
    """The elements of the legend, and where it ends."""

    elements: str
    bottom: int


def _owner_entry(owner: Owner, census: Census, x: int, y: int) -> Iterator[str]:
    room = ENTRY_WIDTH - 40
    yield filled(x, y, 22, 22, census.styles[owner], 4) + rectangle(x, y, 22, 22, "rim", 4)
    yield name(x + 30, y + 9, str(owner), "strong bold", width=room, font_size=11)
    users = [clean(user) for user in owner.users]
    shown = f" · {listed(users, USERS_SHOWN)}" if users else " · nobody uses it"
    text = f"{counted(len(census.held[owner]), 'device')}{shown}"
    yield name(x + 30, y + 22, text, "muted", width=room, font_size=10)


def _keys(items: Iterable[Item]) -> Iterator[Key | Mark]:
    """Give what occurs in the picture and must be told."""
    listed_items = list(items)
    marks = {mark for item in listed_items for mark in marks_of(item)}
    if any(item.is_free for item in listed_items):
        yield FREE
    if any(item.is_shareable for item in listed_items):
        yield SHARED
    if any(item.state is State.BLOCKED for item in listed_items):
        yield BLOCKED
    yield from (mark for mark in MARKS if mark in marks)


def _compact_keys(items: Iterable[Item]) -> Iterator[Key]:
    """Give what must be told of small devices, which have no letters."""
    listed_items = list(items)
    if any(item.is_free for item in listed_items):
        yield FREE
    if any(item.state is State.BLOCKED for item in listed_items):
        yield BLOCKED
    if any(item.problem for item in listed_items):
        yield CROSSED
    if any(item.taints or item.conflict for item in listed_items):
        yield CORNER


def _key_entry(key: Key | Mark, x: int, y: int) -> str:
    if isinstance(key, Mark):
        sign = rectangle(x + 5, y + 1, MARK, MARK, key.look, 3)
        sign += words(x + 11, y + 11, key.letter, "own letter bold s9 middle")
    else:
        sign = rectangle(x, y + 1, 22, 13, key.look, 3)
        if key is SHARED:
            sign += rectangle(x + 3, y + 8, 16, 3, "track") + rectangle(x + 3, y + 8, 9, 3, "mark")
    return sign + words(x + 30, y + 12, key.meaning, "own text s12")
