"""The positions of everything: boxes in rows, rows in boxes, all in whole pixels.

    # leaf: a device; small ones have no text
    # frame: a box with a heading, and rows of leaves and frames in it

1. From inside out a frame puts its content into rows as wide as allowed, and gets its size.
2. From outside in everything gets its position. Frames of one row are made equally high, and
   sockets, NUMA nodes and reaches use the space that is left in their row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from moorage.insight.topology.model import Box, BoxKind, Item, NodeBox, Partitions, Unit, items_of

GAP = 8
PADDING = 10
CELL = (128, 50)
SMALL = (14, 14)
SMALL_GAP = 3
HEADING = 22  # of a frame
MACHINE_HEADING = 50
COMPACT_HEADING = 24
MACHINE_WIDTH = 834  # at most: five PCIe roots beside each other
COMPACT_WIDTH = 172
COLUMN_LENGTH = 2  # units in one column of a PCIe root, before there is another
COLUMNS_MAX = 5

What = Item | Box | Partitions | NodeBox


class PlacedShape(NamedTuple):
    """Something to draw, and where."""

    x: int
    y: int
    width: int
    height: int
    what: What
    is_small: bool = False
    label: str = ""  # of a device


class Leaf(NamedTuple):
    """A device before it has a position."""

    item: Item
    width: int
    height: int
    is_small: bool
    label: str = ""


class LayoutFrame(NamedTuple):
    """A box before it has a position."""

    what: Box | Partitions | NodeBox
    rows: tuple[tuple[Block, ...], ...]
    heading: int
    padding: int
    gap: int
    width: int
    height: int


Block = Leaf | LayoutFrame


def machine_frame(machine: NodeBox, *, is_compact: bool) -> LayoutFrame:
    """Return the frame of a node with everything in it."""
    if is_compact:
        return _compact(machine)
    inner = MACHINE_WIDTH - 2 * PADDING
    units = [_unit(unit, inner) for unit in machine.units]
    boxes = [_box(box, inner) for box in machine.boxes]
    rows = (*_flow(boxes, inner, GAP), *_flow(units, inner, GAP))
    return _frame(machine, rows, MACHINE_HEADING)


def reach_frame(box: Box, width: int, *, is_compact: bool) -> LayoutFrame:
    """Return the frame of devices of no single node."""
    inner = width - 2 * PADDING
    if is_compact:
        return _frame(box, _small_rows(box.items(), inner), HEADING, gap=SMALL_GAP)
    units = [_unit(unit, inner) for unit in box.units]
    return _frame(box, _flow(units, inner, GAP), HEADING)


def placed(block: Block, x: int, y: int, width: int, height: int) -> Iterator[PlacedShape]:
    """Yield a block and everything in it, outer shapes first."""
    if isinstance(block, Leaf):
        label = block.label or block.item.name
        yield PlacedShape(x, y, block.width, block.height, block.item, block.is_small, label)
        return
    yield PlacedShape(x, y, width, height, block.what)
    top = y + block.heading
    inner = width - 2 * block.padding
    for row in block.rows:
        row_height = max(each.height for each in row)
        yield from _placed_row(row, x + block.padding, top, inner, row_height, block.gap)
        top += row_height + block.gap


def _placed_row(
    row: Sequence[Block], left: int, top: int, width: int, height: int, gap: int
) -> Iterator[PlacedShape]:
    growing = sum(map(_grows, row))
    spare = width - _row_width(row, gap)
    for each in row:
        more = 0
        if _grows(each):
            more = spare // growing
            spare, growing = spare - more, growing - 1
        own_height = height if isinstance(each, LayoutFrame) else each.height
        yield from placed(each, left, top, each.width + more, own_height)
        left += each.width + more + gap


def _grows(block: Block) -> bool:
    if isinstance(block, Leaf) or not isinstance(block.what, Box):
        return False
    return block.what.kind is not BoxKind.ROOT


def _box(box: Box, width: int) -> LayoutFrame:
    inner = width - 2 * PADDING
    if box.kind is BoxKind.ROOT:
        columns = min(COLUMNS_MAX, -(-len(box.units) // COLUMN_LENGTH))
        inner = min(inner, columns * CELL[0] + (columns - 1) * GAP)
    units = _flow([_unit(unit, inner) for unit in box.units], inner, GAP)
    boxes = _flow([_box(each, inner) for each in box.boxes], inner, GAP)
    return _frame(box, (*units, *boxes), HEADING)


def _unit(unit: Unit, width: int) -> Block:
    if isinstance(unit, Item):
        return Leaf(unit, *CELL, is_small=False)
    inner = min(width, CELL[0])
    prefix = min(unit.items, key=lambda each: len(each.name)).name + "-"
    large = [
        Leaf(each, *CELL, is_small=False, label=_after(prefix, each.name))
        for each in unit.items
        if _is_large(each)
    ]
    small = [each for each in unit.items if not _is_large(each)]
    rows = (*_flow(large, inner, SMALL_GAP), *_small_rows(small, inner))
    return _frame(unit, rows, HEADING - 6, padding=0, gap=SMALL_GAP)


def _after(prefix: str, name: str) -> str:
    """Return the name of a partition without the name of the whole device."""
    return f"…{name.removeprefix(prefix)}" if name.startswith(prefix) else name


def _is_large(partition: Item) -> bool:
    """Return whether a partition is drawn with its name: most are not allocated."""
    return bool(partition.holds or partition.admins)


def _compact(machine: NodeBox) -> LayoutFrame:
    """Return the frame of a node with small devices, in rows by NUMA node."""
    inner = COMPACT_WIDTH - 2 * PADDING
    parts = [*_numa_parts(machine.boxes), list(items_of(machine.units))]
    rows = [row for part in parts for row in _small_rows(part, inner)]
    return _frame(machine, tuple(rows), COMPACT_HEADING, gap=SMALL_GAP, width=COMPACT_WIDTH)


def _numa_parts(boxes: Iterable[Box]) -> Iterator[list[Item]]:
    for box in boxes:
        if box.kind is BoxKind.SOCKET:
            yield from _numa_parts(box.boxes)
            yield list(items_of(box.units))
        else:
            yield list(box.items())


def _frame(
    what: Box | Partitions | NodeBox,
    rows: tuple[tuple[Block, ...], ...],
    heading: int,
    *,
    padding: int = PADDING,
    gap: int = GAP,
    width: int = 0,
) -> LayoutFrame:
    inner = max((_row_width(row, gap) for row in rows), default=CELL[0])
    heights = [max(each.height for each in row) for row in rows]
    height = heading + sum(heights) + gap * max(len(rows) - 1, 0) + padding
    return LayoutFrame(what, rows, heading, padding, gap, max(width, inner + 2 * padding), height)


def _small_rows(items: Iterable[Item], width: int) -> tuple[tuple[Block, ...], ...]:
    return _flow([Leaf(each, *SMALL, is_small=True) for each in items], width, SMALL_GAP)


def _flow(blocks: Sequence[Block], width: int, gap: int) -> tuple[tuple[Block, ...], ...]:
    """Return the blocks in rows that are no wider than `width`, where possible."""
    rows: list[list[Block]] = []
    used = 0
    for block in blocks:
        if rows and used + gap + block.width <= width:
            rows[-1].append(block)
            used += gap + block.width
        else:
            rows.append([block])
            used = block.width
    return tuple(map(tuple, rows))


def _row_width(row: Sequence[Block], gap: int) -> int:
    return sum(each.width for each in row) + gap * (len(row) - 1)
