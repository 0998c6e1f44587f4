"""Line charts as self-contained SVG, without scripts or other packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import floor, log10
from typing import Final

from moorage.kit.printable import printable

Point = tuple[float, float]
WIDTH: Final = 760
HEIGHT: Final = 320
LEFT, RIGHT, TOP, BOTTOM = 70, 206, 34, 48
NAME_MAX: Final = 26  # of the characters beside a line
TICKS: Final = 5
DOTS_MAX: Final = 40
# For light and dark pages. All charts of a notebook share a page, so the class has a prefix.
STYLE: Final = (
    ".moorage-chart{fill:#1f2328}.moorage-chart .ground{fill:#fff}"
    ".moorage-chart .grid{stroke:#d0d7de}@media (prefers-color-scheme:dark){"
    ".moorage-chart{fill:#e6edf3}.moorage-chart .ground{fill:#0d1117}"
    ".moorage-chart .grid{stroke:#30363d}}"
)
# Lines also differ in their dashes, for readers who cannot see colours.
LOOKS: Final = (
    ("#388bfd", ""),
    ("#e5534b", "6 3"),
    ("#3fa455", "2 3"),
    ("#986ee2", "8 3 2 3"),
    ("#c69026", "1 4"),
    ("#768390", "10 5"),
)


def line_chart(
    lines: Mapping[str, Sequence[Point]], *, title: str = "", x: str = "", y: str = ""
) -> str:
    """Return a chart of lines, given by name and points; there is at least one point."""
    return "".join(_drawn(lines, title, x, y))


class _Axis:
    """The numbers on one axis, from its first tick to its last."""

    def __init__(self, values: Iterable[float], low_px: float, high_px: float) -> None:
        found = list(values)
        low, high = min(*found, 0.0), max(*found, 0.0)
        self.step = _round_step((high - low) / TICKS if high > low else 1.0)
        self.low = floor(low / self.step) * self.step
        self.count = max(1, -floor((self.low - high) / self.step))
        self._low_px, self._high_px = low_px, high_px

    def place(self, value: float) -> float:
        """Return the position of a number in pixels."""
        share = (value - self.low) / (self.step * self.count)
        return round(self._low_px + share * (self._high_px - self._low_px), 1)

    def ticks(self) -> Iterator[float]:
        """Yield the numbers with labels."""
        for number in range(self.count + 1):
            yield round(self.low + number * self.step, 12)


def _round_step(step: float) -> float:
    """Return the next larger number of 1, 2, 5, 10, 20, …"""
    unit = 10.0 ** floor(log10(step))
    return next((each * unit for each in (1, 2, 5) if step <= each * unit), 10 * unit)


def _drawn(
    lines: Mapping[str, Sequence[Point]], title: str, x_name: str, y_name: str
) -> Iterator[str]:
    """Yield the parts of the chart."""
    points = [point for each in lines.values() for point in each]
    across = _Axis((x for x, _ in points), LEFT, WIDTH - RIGHT)
    up = _Axis((y for _, y in points), HEIGHT - BOTTOM, TOP)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" class="moorage-chart" font-family="sans-serif" '
        f'font-size="12"><title>{_text(title or ", ".join(lines))}</title><style>{STYLE}</style>'
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
    )
    yield _words(title, LEFT, 18, "start", is_bold=True)
    yield from _axes(across, up)
    yield _words(x_name, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f' transform="rotate(-90 14 {middle})"'
    yield _words(y_name, 14, middle, "middle", more=turned)
    for number, (name, each) in enumerate(lines.items()):
        yield from _line(number, name, [(across.place(x), up.place(y)) for x, y in each])
    yield "</svg>"


def _axes(across: _Axis, up: _Axis) -> Iterator[str]:
    for tick in up.ticks():
        y = up.place(tick)
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" class="grid"/>'
        yield _words(f"{tick:,g}", LEFT - 6, y + 4, "end")
    for tick in across.ticks():
        x = across.place(tick)
        yield f'<path d="M{x} {HEIGHT - BOTTOM}v5" class="grid"/>'
        yield _words(f"{tick:,g}", x, HEIGHT - BOTTOM + 18, "middle")


def _line(number: int, name: str, points: Sequence[Point]) -> Iterator[str]:
    colour, dashes = LOOKS[number % len(LOOKS)]
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    path = " ".join(f"{x},{y}" for x, y in points)
    yield (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashed}>'
        f"<title>{_text(name)}</title></polyline>"
    )
    if len(points) <= DOTS_MAX:
        yield "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points)
    x, y = WIDTH - RIGHT + 16, TOP + 4 + 16 * number
    yield f'<path d="M{x} {y}h24" stroke="{colour}" stroke-width="2"{dashed}/>'
    shown = name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}…"
    yield _words(shown, x + 30, y + 4, "start")


def _words(
    value: str, x: float, y: float, anchor: str, *, is_bold: bool = False, more: str = ""
) -> str:
    if not value:
        return ""
    weight = ' font-weight="bold"' if is_bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight}{more}>{_text(value)}</text>'


def _text(value: str) -> str:
    return escape(printable(value), quote=True)
