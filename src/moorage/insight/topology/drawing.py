"""The picture as SVG: one self-contained text without scripts.

    title and totals
    nodes, in a grid
    devices of no single node
    legend

Many devices become small squares without names; beyond a bound the last nodes are left out, and the
picture states it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import NamedTuple

from msgspec.structs import replace

from moorage.insight.messages import counted
from moorage.insight.topology.cells import cell, legend
from moorage.insight.topology.elements import (
    TopologyIndex,
    clean,
    escaped,
    free_by_driver,
    joined,
    name,
    patterns,
    rectangle,
    stylesheet,
    tooltip,
    words,
)
from moorage.insight.topology.layout import (
    GAP,
    PADDING,
    LayoutFrame,
    PlacedShape,
    machine_frame,
    placed,
    reach_frame,
)
from moorage.insight.topology.model import Box, BoxKind, Item, NodeBox, Partitions, Topology

DETAILED_MAX = 1_000  # devices that are drawn with their names
DEVICES_MAX = 10_000  # devices that are drawn
MARGIN = 24
GUTTER = 16
WIDTH_MIN = 640
HEADER = 70
REACH_HEADING = 34
ASPECT = 2.2  # of the grid; wide, as screens are
_LOOKS = {
    BoxKind.SOCKET: "socket",
    BoxKind.NUMA_NODE: "numa",
    BoxKind.ROOT: "root",
    BoxKind.REACH: "socket",
}


class LeftOut(NamedTuple):
    """The parts that the picture leaves out."""

    machines: int = 0
    devices: int = 0


def svg(topology: Topology, *, title: str) -> str:
    """Return the picture of a topology."""
    return _Picture(topology, title).text()


def shown(topology: Topology) -> tuple[Topology, LeftOut]:
    """Return the part of a topology that is drawn, and the size of the rest."""
    room = DEVICES_MAX
    machines: list[NodeBox] = []
    for machine in topology.machines:
        room -= sum(1 for _ in machine.items())
        if room < 0:
            break
        machines.append(machine)
    elsewhere: list[Box] = []
    for box in topology.elsewhere:
        room -= sum(1 for _ in box.items())
        if room >= 0:
            elsewhere.append(box)
    drawn = replace(topology, machines=tuple(machines), elsewhere=tuple(elsewhere))
    devices = sum(1 for _ in topology.items()) - sum(1 for _ in drawn.items())
    return drawn, LeftOut(len(topology.machines) - len(machines), devices)


class _Picture:
    """One picture while it is drawn, from top to bottom."""

    def __init__(self, topology: Topology, title: str) -> None:
        self._all = topology
        self._title = clean(title)
        self._drawn, self._left_out = shown(topology)
        self._index = TopologyIndex(topology)
        self._items = list(self._drawn.items())
        self._is_compact = len(self._items) > DETAILED_MAX

    def text(self) -> str:
        frames = [
            machine_frame(machine, is_compact=self._is_compact) for machine in self._drawn.machines
        ]
        columns, column_width = _grid(frames)
        inner = max(WIDTH_MIN, columns * (column_width + GUTTER) - GUTTER)
        body = [*self._machines(frames, columns, column_width)]
        bottom = HEADER + MARGIN + _grid_height(frames, columns)
        reaches = [
            reach_frame(box, inner - 2 * PADDING, is_compact=self._is_compact)
            for box in self._drawn.elsewhere
        ]
        if reaches:
            body += self._elsewhere(reaches, bottom, inner)
            bottom += _elsewhere_height(reaches) + GUTTER
        place = (MARGIN, bottom + 8, inner)
        key = legend(self._items, self._index, *place, is_compact=self._is_compact)
        return "".join(
            [
                *self._opening(inner + 2 * MARGIN, key.bottom + MARGIN),
                *self._header(inner),
                *body,
                key.elements,
                "</svg>\n",
            ]
        )

    def _opening(self, width: int, height: int) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="topology" role="img" '
            f'aria-labelledby="topology-title topology-description" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        )
        yield f'<title id="topology-title">{escaped(self._title)}</title>'
        yield f'<desc id="topology-description">{escaped(self._description())}</desc>'
        yield f"<style>{stylesheet()}</style><defs>{patterns()}</defs>"
        yield rectangle(0, 0, width, height, "paper")

    def _description(self) -> str:
        return (
            f"{self._totals()}. Each node is a box with its sockets, NUMA nodes, PCIe roots and "
            "devices; devices have the colour of the claim that holds them."
        )

    def _totals(self) -> str:
        index = self._index
        parts = [
            counted(len(self._all.machines), "node"),
            f"{counted(index.devices, 'device')}, {index.free:,} free",
            f"{counted(len(index.owners), 'claim')} with devices",
        ]
        if self._all.nodes_without_devices:
            parts.insert(1, f"{self._all.nodes_without_devices:,} more without devices")
        return " · ".join(parts)

    def _header(self, width: int) -> Iterator[str]:
        yield name(MARGIN, MARGIN + 18, self._title, "own strong bold", width=width, font_size=22)
        yield words(MARGIN, MARGIN + 40, self._totals(), "own muted s14")
        left_out = self._left_out
        if left_out.devices:
            text = (
                f"Too many to draw: {counted(left_out.machines, 'node')} and "
                f"{counted(left_out.devices, 'device')} are left out"
            )
            yield words(MARGIN, MARGIN + 60, text, "own alarm bold s14")

    def _machines(self, frames: Sequence[LayoutFrame], columns: int, width: int) -> Iterator[str]:
        y = HEADER + MARGIN
        for start in range(0, len(frames), columns):
            row = frames[start : start + columns]
            height = max(frame.height for frame in row)
            for column, frame in enumerate(row):
                number = start + column
                yield f'<g class="m" data-node="{number}">'
                shapes = placed(frame, MARGIN + column * (width + GUTTER), y, width, height)
                yield from self._shapes(shapes)
                yield "</g>"
            y += height + GUTTER

    def _elsewhere(self, frames: Sequence[LayoutFrame], y: int, width: int) -> Iterator[str]:
        height = _elsewhere_height(frames)
        yield '<g class="m" data-node="-1">'
        yield rectangle(MARGIN, y, width, height, "machine", 10)
        yield words(MARGIN + 12, y + 22, "Devices of no single node", "own strong bold s14")
        top = y + REACH_HEADING
        for frame in frames:
            left, inner = MARGIN + PADDING, width - 2 * PADDING
            shapes = placed(frame, left, top, inner, frame.height)
            yield from self._shapes(shapes)
            top += frame.height + GAP
        yield "</g>"

    def _shapes(self, shapes: Iterator[PlacedShape]) -> Iterator[str]:
        for shape in shapes:
            match shape.what:
                case Item():
                    yield from cell(shape, shape.what, self._index)
                case NodeBox():
                    yield from self._machine(shape, shape.what)
                case Box():
                    yield from _box(shape, shape.what)
                case Partitions():
                    yield name(
                        shape.x + 2,
                        shape.y + 11,
                        shape.what.name,
                        "muted",
                        width=shape.width - 4,
                        font_size=9,
                    )

    def _machine(self, shape: PlacedShape, machine: NodeBox) -> Iterator[str]:
        yield rectangle(shape.x, shape.y, shape.width, shape.height, "machine", 10)
        items = list(machine.items())
        free = sum(item.is_free for item in items)
        left, right = shape.x + 12, shape.x + shape.width - 12
        if self._is_compact:
            lines = [clean(machine.name), f"{free} of {len(items)} devices free"]
            yield f"<g>{tooltip(*lines)}"
            room = shape.width - 76
            yield name(left, shape.y + 16, machine.name, "strong bold", width=room, font_size=10)
            yield words(right, shape.y + 16, f"{free}/{len(items)}", "muted s10 last")
            yield "</g>"
            return
        absent = "" if machine.is_known else ", no Node object"
        room = shape.width - 220
        yield name(left, shape.y + 22, machine.name, "strong bold", width=room, font_size=14)
        text = f"{free} of {len(items)} free{absent}"
        yield words(right, shape.y + 22, text, "own text s12 last")
        drivers = [f"{driver} {free}/{total}" for driver, free, total in free_by_driver(items)]
        yield words(left, shape.y + 39, joined(drivers, shape.width - 24, 10), "muted s10")


def _box(shape: PlacedShape, box: Box) -> Iterator[str]:
    radius = 8 if box.kind is BoxKind.SOCKET else 6
    yield rectangle(shape.x, shape.y, shape.width, shape.height, _LOOKS[box.kind], radius)
    look = "text" if box.kind in (BoxKind.SOCKET, BoxKind.REACH) else "muted"
    room = shape.width - 20
    yield name(shape.x + 10, shape.y + 15, box.label, look, width=room, font_size=10)


def _grid(frames: Sequence[LayoutFrame]) -> tuple[int, int]:
    """Return the number and width of the columns of nodes."""
    if not frames:
        return 1, WIDTH_MIN
    width = max(frame.width for frame in frames)
    height = sum(frame.height for frame in frames) / len(frames)
    columns = round(sqrt(ASPECT * len(frames) * (height + GUTTER) / (width + GUTTER)))
    return min(max(columns, 1), len(frames)), width


def _grid_height(frames: Sequence[LayoutFrame], columns: int) -> int:
    rows = [frames[start : start + columns] for start in range(0, len(frames), columns)]
    return sum(max(frame.height for frame in row) + GUTTER for row in rows)


def _elsewhere_height(frames: Sequence[LayoutFrame]) -> int:
    return REACH_HEADING + sum(frame.height + GAP for frame in frames) - GAP + PADDING
