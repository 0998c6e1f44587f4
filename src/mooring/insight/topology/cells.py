"""A device as it is drawn: filled with the colour of its owner, with its name and marks.

whole        the colour of the owner
shared       a bar with a part for each owner
× ! T A N    marks: unusable, contradictory, tainted, admin access, several NUMA nodes
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.insight.devices import State
from mooring.insight.topology.census import Census
from mooring.insight.topology.ink import filled, name, rectangle, tooltip, words
from mooring.insight.topology.layout import Placed
from mooring.insight.topology.model import Item, Use, part_of
from mooring.insight.topology.owners import Hold, Owner
from mooring.insight.topology.text import clean, counted, listed

OWNERS_SHOWN = 8  # in a tooltip
PARTS_MAX = 24  # of a bar: there is no room for more
RADIUS = 5
SMALL_RADIUS = 3
MARK = 13


class Mark(NamedTuple):
    """A letter on a device, and what it means."""

    letter: str
    meaning: str
    look: str = "mark"


UNUSABLE = Mark("×", "unusable: the tooltip says why", "alarm")
TAINTED = Mark("T", "tainted", "alarm")
CONFLICT = Mark("!", "more of it is held than there is", "alarm")
ADMIN = Mark("A", "looked at with admin access")
SEVERAL_NODES = Mark("N", "near several NUMA nodes; stands at its own")
MARKS = (UNUSABLE, CONFLICT, TAINTED, ADMIN, SEVERAL_NODES)


def marks_of(item: Item) -> list[Mark]:
    """Return the marks of a device."""
    has = {
        UNUSABLE: bool(item.problem),
        CONFLICT: bool(item.conflict),
        TAINTED: bool(item.taints),
        ADMIN: bool(item.admins),
        SEVERAL_NODES: len(item.place.numa_nodes) > 1,
    }
    return [mark for mark in MARKS if has[mark]]


def cell(shape: Placed, item: Item, census: Census) -> Iterator[str]:
    """Give the elements of a device."""
    owners = " ".join(str(census.owners[owner]) for owner in item.owners)
    look = "d f" if item.is_free else "d"
    yield f'<g class="{look}" data-driver="{census.drivers[item.driver]}" data-owner="{owners}">'
    yield tooltip(*lines_of(item))
    if shape.is_small:
        yield from _small(shape, item, census)
    else:
        yield from _large(shape, item, census)
    yield "</g>"


# --- sizes ----------------------------------------------------------------------------------


def _large(shape: Placed, item: Item, census: Census) -> Iterator[str]:
    yield _background(shape, item, census, RADIUS)
    is_filled = _whole_owner(item) is not None
    marks = marks_of(item)
    left, room = shape.x + 8, shape.width - 14
    look = "on bold" if is_filled else "muted bold" if item.problem else "strong bold"
    yield name(left, shape.y + 15, shape.label, look, width=room, font_size=11)
    look = "on" if is_filled else "muted"
    driver_room = room - MARK * len(marks)
    yield name(left, shape.y + 26, item.driver, look, width=driver_room, font_size=9)
    look = "on" if is_filled else "text"
    yield name(left, shape.y + 37, _last_line(item), look, width=room, font_size=9)
    if not is_filled and (item.holds or item.is_shareable):
        yield from _bar(shape, item, census)
    for index, mark in enumerate(marks):
        yield _mark(shape.x + shape.width - 6 - MARK * (index + 1) + 2, shape.y + 17, mark)


def _small(shape: Placed, item: Item, census: Census) -> Iterator[str]:
    yield _background(shape, item, census, SMALL_RADIUS)
    if _whole_owner(item) is None and item.holds:
        inside = shape._replace(x=shape.x + 1, width=shape.width - 2)
        yield from _parts(inside, shape.y + 1, shape.height - 2, item, census)
    x, y = shape.x, shape.y
    if item.problem:
        yield f'<path class="cross" d="M{x + 3} {y + 3}l8 8m0 -8l-8 8"/>'
    if item.taints or item.conflict:
        yield f'<path class="alarm" d="M{x + 7} {y}h7v7z"/>'


def _background(shape: Placed, item: Item, census: Census, radius: int) -> str:
    box = shape.x, shape.y, shape.width, shape.height
    owner = _whole_owner(item)
    if owner is not None:
        look = "gone" if item.problem else "rim"
        return filled(*box, census.styles[owner], radius) + rectangle(*box, look, radius)
    look = "gone" if item.problem else "blocked" if item.state is State.BLOCKED else "free"
    return rectangle(*box, look, radius)


def _mark(x: int, y: int, mark: Mark) -> str:
    pill = rectangle(x, y, MARK - 2, MARK - 2, mark.look, SMALL_RADIUS)
    return pill + words(x + 5, y + 9, mark.letter, "own letter bold s9 middle")


def _whole_owner(item: Item) -> Owner | None:
    """Return the only owner of a device, if it has all of it."""
    if len(item.holds) != 1 or item.holds[0].is_share:
        return None
    return item.holds[0].owner


# --- shares ---------------------------------------------------------------------------------


def _bar(shape: Placed, item: Item, census: Census) -> Iterator[str]:
    inside = shape._replace(x=shape.x + 8, width=shape.width - 16)
    y = shape.y + shape.height - 8
    yield rectangle(inside.x, y, inside.width, 4, "track")
    yield from _parts(inside, y, 4, item, census)


def _parts(shape: Placed, y: int, height: int, item: Item, census: Census) -> Iterator[str]:
    """Give a part of a bar for each owner, as wide as its share."""
    x, end = shape.x, shape.x + shape.width
    for owner, part in _fractions(item)[:PARTS_MAX]:
        width = min(max(round(part * shape.width), 2), end - x)
        if width > 0:
            yield filled(x, y, width, height, census.styles[owner])
        x += width


def _fractions(item: Item) -> list[tuple[Owner, float]]:
    """Return the part of a device that each owner has; equal ones if nothing says how much."""
    use = main_use(item)
    if use is None or not use.by_owner:
        return [(owner, 1 / len(item.holds)) for owner in item.owners]
    return [(owner, part_of(amount, use.total)) for owner, amount in use.by_owner]


def main_use(item: Item) -> Use | None:
    """Return the capacity of which the largest part is taken: it decides what still fits."""
    return max(item.uses, key=lambda use: use.fraction, default=None)


# --- words ----------------------------------------------------------------------------------


def _last_line(item: Item) -> str:
    if item.is_shareable and (use := main_use(item)) is not None:
        unit = use.name.rpartition("/")[2]
        return f"{use.taken}/{use.total} {unit}"
    match item.owners:
        case (owner,):
            return str(owner)
        case (_, _, *_):
            return counted(len(item.owners), "claim")
    return "" if item.is_free else item.state.value


def lines_of(item: Item) -> Iterator[str]:
    """Give all that is known of a device, for its tooltip."""
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
