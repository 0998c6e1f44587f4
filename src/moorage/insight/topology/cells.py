"""Devices as they are drawn, and the legend that explains colours and marks.

whole        the colour of the owner
shared       a bar with a part for each owner
× ! T A N    marks: unusable, contradictory, tainted, admin access, several NUMA nodes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moorage.insight.devices import DeviceState
from moorage.insight.messages import counted
from moorage.insight.topology.elements import (
    TopologyIndex,
    clean,
    filled,
    listed,
    name,
    rectangle,
    tooltip,
    words,
)
from moorage.insight.topology.layout import PlacedShape
from moorage.insight.topology.model import Hold, Item, Owner, Use, part_of

OWNERS_SHOWN = 8  # in a tooltip
PARTS_MAX = 24  # of a bar: more would be too narrow
RADIUS = 5
SMALL_RADIUS = 3
MARK = 13
OWNERS_MAX = 60
ENTRY_WIDTH = 276
ENTRY_HEIGHT = 36
KEY_HEIGHT = 22
KEY_GAP = 6
HEADING = 28
USERS_SHOWN = 1


class CellMark(NamedTuple):
    """A letter on a device, and what it means."""

    letter: str
    meaning: str
    look: str = "mark"


UNUSABLE = CellMark("×", "unusable: the tooltip says why", "alarm")
TAINTED = CellMark("T", "tainted", "alarm")
CONFLICT = CellMark("!", "more of it is held than there is", "alarm")
ADMIN = CellMark("A", "looked at with admin access")
SEVERAL_NODES = CellMark("N", "near several NUMA nodes; stands at its own")
MARKS = (UNUSABLE, CONFLICT, TAINTED, ADMIN, SEVERAL_NODES)


def _marks_of(item: Item) -> list[CellMark]:
    has = {
        UNUSABLE: bool(item.problem),
        CONFLICT: bool(item.conflict),
        TAINTED: bool(item.taints),
        ADMIN: bool(item.admins),
        SEVERAL_NODES: len(item.place.numa_nodes) > 1,
    }
    return [mark for mark in MARKS if has[mark]]


def cell(shape: PlacedShape, item: Item, index: TopologyIndex) -> Iterator[str]:
    """Yield the elements of a device."""
    owners = " ".join(str(index.owners[owner]) for owner in item.owners)
    look = "d f" if item.is_free else "d"
    yield f'<g class="{look}" data-driver="{index.drivers[item.driver]}" data-owner="{owners}">'
    yield tooltip(*_lines_of(item))
    if shape.is_small:
        yield from _small(shape, item, index)
    else:
        yield from _large(shape, item, index)
    yield "</g>"


# --- sizes ------------------------------------------------------------------------------


def _large(shape: PlacedShape, item: Item, index: TopologyIndex) -> Iterator[str]:
    yield _background(shape, item, index, RADIUS)
    is_filled = _whole_owner(item) is not None
    marks = _marks_of(item)
    left, room = shape.x + 8, shape.width - 14
    look = "on bold" if is_filled else "muted bold" if item.problem else "strong bold"
    yield name(left, shape.y + 15, shape.label, look, width=room, font_size=11)
    look = "on" if is_filled else "muted"
    driver_room = room - MARK * len(marks)
    yield name(left, shape.y + 26, item.driver, look, width=driver_room, font_size=9)
    look = "on" if is_filled else "text"
    yield name(left, shape.y + 37, _last_line(item), look, width=room, font_size=9)
    if not is_filled and (item.holds or item.is_shareable):
        yield from _bar(shape, item, index)
    for number, mark in enumerate(marks):
        yield _mark(shape.x + shape.width - 6 - MARK * (number + 1) + 2, shape.y + 17, mark)


def _small(shape: PlacedShape, item: Item, index: TopologyIndex) -> Iterator[str]:
    yield _background(shape, item, index, SMALL_RADIUS)
    if _whole_owner(item) is None and item.holds:
        inside = shape._replace(x=shape.x + 1, width=shape.width - 2)
        yield from _parts(inside, shape.y + 1, shape.height - 2, item, index)
    x, y = shape.x, shape.y
    if item.problem:
        yield f'<path class="cross" d="M{x + 3} {y + 3}l8 8m0 -8l-8 8"/>'
    if item.taints or item.conflict:
        yield f'<path class="alarm" d="M{x + 7} {y}h7v7z"/>'


def _background(shape: PlacedShape, item: Item, index: TopologyIndex, radius: int) -> str:
    box = shape.x, shape.y, shape.width, shape.height
    owner = _whole_owner(item)
    if owner is not None:
        look = "gone" if item.problem else "rim"
        return filled(*box, index.styles[owner], radius) + rectangle(*box, look, radius)
    look = "gone" if item.problem else "blocked" if item.state is DeviceState.BLOCKED else "free"
    return rectangle(*box, look, radius)


def _mark(x: int, y: int, mark: CellMark) -> str:
    pill = rectangle(x, y, MARK - 2, MARK - 2, mark.look, SMALL_RADIUS)
    return pill + words(x + 5, y + 9, mark.letter, "own letter bold s9 middle")


def _whole_owner(item: Item) -> Owner | None:
    """Return the owner of a whole device, if there is one."""
    if len(item.holds) != 1 or item.holds[0].is_share:
        return None
    return item.holds[0].owner


# --- shares -----------------------------------------------------------------------------


def _bar(shape: PlacedShape, item: Item, index: TopologyIndex) -> Iterator[str]:
    inside = shape._replace(x=shape.x + 8, width=shape.width - 16)
    y = shape.y + shape.height - 8
    yield rectangle(inside.x, y, inside.width, 4, "track")
    yield from _parts(inside, y, 4, item, index)


def _parts(
    shape: PlacedShape, y: int, height: int, item: Item, index: TopologyIndex
) -> Iterator[str]:
    """Yield a part of a bar for each owner, as wide as its share."""
    x, end = shape.x, shape.x + shape.width
    for owner, part in _fractions(item)[:PARTS_MAX]:
        width = min(max(round(part * shape.width), 2), end - x)
        if width > 0:
            yield filled(x, y, width, height, index.styles[owner])
        x += width


def _fractions(item: Item) -> list[tuple[Owner, float]]:
    """Return each owner's part of a device; equal parts if no capacity is consumed."""
    use = _main_use(item)
    if use is None or not use.by_owner:
        return [(owner, 1 / len(item.holds)) for owner in item.owners]
    return [(owner, part_of(amount, use.total)) for owner, amount in use.by_owner]


def _main_use(item: Item) -> Use | None:
    """Return the most used capacity, which decides what still fits."""
    return max(item.uses, key=lambda use: use.fraction, default=None)


# --- tooltips ---------------------------------------------------------------------------


def _last_line(item: Item) -> str:
    if item.is_shareable and (use := _main_use(item)) is not None:
        unit = use.name.rpartition("/")[2]
        return f"{use.taken}/{use.total} {unit}"
    match item.owners:
        case (owner,):
            return str(owner)
        case (_, _, *_):
            return counted(len(item.owners), "claim")
    return "" if item.is_free else item.state.value


def _lines_of(item: Item) -> Iterator[str]:
    yield clean(item.name)
    yield f"{clean(item.driver)}, pool {clean(item.pool)}"
    yield from _place_lines(item)
    yield from (f"tainted: {clean(taint)}" for taint in item.taints[:OWNERS_SHOWN])
    if item.problem:
        yield f"unusable: {clean(item.problem)}"
    if item.conflict:
        yield f"contradictory: {clean(item.conflict)}"
    for use in item.uses:
        yield f"{clean(use.name)}: {use.taken} of {use.total} taken"
    yield from map(_hold_line, item.holds[:OWNERS_SHOWN])
    if len(item.holds) > OWNERS_SHOWN:
        yield f"and {len(item.holds) - OWNERS_SHOWN:,} more claims"
    yield from (f"blocked: {clean(shortage)}" for shortage in item.shortages[:OWNERS_SHOWN])
    if item.blocked_by:
        names = [clean(str(owner)) for owner in item.blocked_by]
        yield f"what it needs is held by {listed(names, OWNERS_SHOWN)}"
    if item.admins:
        names = [clean(str(owner)) for owner in item.admins]
        yield f"admin access: {listed(names, OWNERS_SHOWN)}"
    if item.is_free:
        yield "free"


def _place_lines(item: Item) -> Iterator[str]:
    place = item.place
    if place.numa_nodes:
        numbers = ", ".join(map(str, place.numa_nodes[:OWNERS_SHOWN]))
        noun = "NUMA node" if len(place.numa_nodes) == 1 else "NUMA nodes"
        yield f"{noun} {numbers}{' (by its PCIe root)' if place.is_inferred else ''}"
    if place.root or place.bus_id:
        yield "PCIe " + ", ".join(clean(each) for each in (place.root, place.bus_id) if each)


def _hold_line(hold: Hold) -> str:
    users = [clean(user) for user in hold.owner.users]
    shown = f", {listed(users, OWNERS_SHOWN)}" if users else ""
    share = "shared by" if hold.is_share else "held by"
    return f"{share} {clean(str(hold.owner))}{shown}"


# --- legend -----------------------------------------------------------------------------


class LegendKey(NamedTuple):
    """A look of a device, and what it means."""

    look: str
    meaning: str


FREE = LegendKey("free", "free")
SHARED = LegendKey("free", "shareable: the bar shows what is taken")
CROSSED = LegendKey("gone", "crossed out: unusable")
CORNER = LegendKey("alarm", "red corner: tainted, or contradictory")
BLOCKED = LegendKey("blocked", "blocked: others have what it needs")


class Legend(NamedTuple):
    """The elements of the legend, and where it ends."""

    elements: str
    bottom: int


def legend(
    items: Iterable[Item], index: TopologyIndex, x: int, y: int, width: int, *, is_compact: bool
) -> Legend:
    """Return the legend, with its height."""
    elements: list[str] = []
    owners = list(index.owners)
    columns = max(width // ENTRY_WIDTH, 1)
    if owners:
        elements.append(words(x, y + 14, "Claims", "own strong bold s14"))
        y += HEADING
        for number, owner in enumerate(owners[:OWNERS_MAX]):
            row, column = divmod(number, columns)
            place = x + column * ENTRY_WIDTH, y + row * ENTRY_HEIGHT
            elements += _owner_entry(owner, index, *place)
        y += -(-min(len(owners), OWNERS_MAX) // columns) * ENTRY_HEIGHT
    if len(owners) > OWNERS_MAX:
        left = f"and {counted(len(owners) - OWNERS_MAX, 'claim')} more, not listed here"
        elements.append(words(x, y + 12, left, "own muted s12"))
        y += KEY_HEIGHT
    keys = list(_compact_keys(items) if is_compact else _keys(items))
    y += KEY_GAP
    for number, key in enumerate(keys):
        row, column = divmod(number, columns)
        elements.append(_key_entry(key, x + column * ENTRY_WIDTH, y + row * KEY_HEIGHT))
    return Legend("".join(elements), y + -(-len(keys) // columns) * KEY_HEIGHT)


def _owner_entry(owner: Owner, index: TopologyIndex, x: int, y: int) -> Iterator[str]:
    room = ENTRY_WIDTH - 40
    yield filled(x, y, 22, 22, index.styles[owner], 4) + rectangle(x, y, 22, 22, "rim", 4)
    yield name(x + 30, y + 9, str(owner), "strong bold", width=room, font_size=11)
    users = [clean(user) for user in owner.users]
    shown = f" · {listed(users, USERS_SHOWN)}" if users else " · nobody uses it"
    text = f"{counted(len(index.held[owner]), 'device')}{shown}"
    yield name(x + 30, y + 22, text, "muted", width=room, font_size=10)


def _keys(items: Iterable[Item]) -> Iterator[LegendKey | CellMark]:
    """Yield the keys of what occurs in the picture."""
    listed_items = list(items)
    marks = {mark for item in listed_items for mark in _marks_of(item)}
    if any(item.is_free for item in listed_items):
        yield FREE
    if any(item.is_shareable for item in listed_items):
        yield SHARED
    if any(item.state is DeviceState.BLOCKED for item in listed_items):
        yield BLOCKED
    yield from (mark for mark in MARKS if mark in marks)


def _compact_keys(items: Iterable[Item]) -> Iterator[LegendKey]:
    """Yield the keys for small devices, which have no letters."""
    listed_items = list(items)
    if any(item.is_free for item in listed_items):
        yield FREE
    if any(item.state is DeviceState.BLOCKED for item in listed_items):
        yield BLOCKED
    if any(item.problem for item in listed_items):
        yield CROSSED
    if any(item.taints or item.conflict for item in listed_items):
        yield CORNER


def _key_entry(key: LegendKey | CellMark, x: int, y: int) -> str:
    if isinstance(key, CellMark):
        sign = rectangle(x + 5, y + 1, MARK, MARK, key.look, 3)
        sign += words(x + 11, y + 11, key.letter, "own letter bold s9 middle")
    else:
        sign = rectangle(x, y + 1, 22, 13, key.look, 3)
        if key is SHARED:
            sign += rectangle(x + 3, y + 8, 16, 3, "track") + rectangle(x + 3, y + 8, 9, 3, "mark")
    return sign + words(x + 30, y + 12, key.meaning, "own text s12")
