"""Line charts as SVG: enough to look at a sweep in a notebook, without other packages.

moorage.chart({"mean wait": [(4, 7200), (8, 900)]}, x="GPUs per node", y="seconds")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Final

from moorage.insight.simulation.line_chart import Point, line_chart
from moorage.kit.atomic_file import replace_file
from moorage.kit.errors import MoorageError
from moorage.library.results import Readable

POINTS_MAX: Final = 100_000


class Chart(Readable):
    """A line chart. Notebooks show it; `save` writes it as an SVG file."""

    __slots__ = ("_lines", "_title", "_x", "_y")

    def __init__(
        self, lines: Mapping[str, Sequence[Point]], title: str, x_name: str, y_name: str
    ) -> None:
        self._lines = {name: tuple(points) for name, points in lines.items()}
        self._title, self._x, self._y = title, x_name, y_name

    @property
    def svg(self) -> str:
        """The chart as self-contained SVG without scripts."""
        return line_chart(self._lines, title=self._title, x=self._x, y=self._y)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the chart to an SVG file that only its owner can read."""
        replace_file(Path(path), self.svg.encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the points of all lines."""
        lines = {name: [list(point) for point in points] for name, points in self._lines.items()}
        return {"title": self._title, "x": self._x, "y": self._y, "lines": lines}

    def _rows(self) -> Iterator[dict[str, Any]]:
        for name, points in self._lines.items():
            yield from ({"line": name, "x": x, "y": y} for x, y in points)

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return f"{self._title or 'chart'}: {', '.join(self._lines)}"


def chart(
    lines: Mapping[str, Iterable[Point]], *, title: str = "", x: str = "", y: str = ""
) -> Chart:
    """Return a chart of lines, given by their names and their points from left to right.

    `x` and `y` are the labels of the axes. Raises MoorageError for points that are not finite.
    """
    found = {
        name: [(float(at), float(value)) for at, value in each] for name, each in lines.items()
    }
    points = [point for each in found.values() for point in each]
    if not points:
        raise MoorageError("a chart needs a line with a point")
    if len(points) > POINTS_MAX:
        raise MoorageError(f"{len(points):,} points: more than {POINTS_MAX:,}, the maximum")
    if not all(isfinite(number) for point in points for number in point):
        raise MoorageError("a chart has a point that is no finite number")
    return Chart(found, title, x, y)
