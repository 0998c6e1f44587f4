"""Bar charts of the benchmark records in docs/data, one for each record."""

from __future__ import annotations

import json
import math
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

from moorage.insight.topology.elements import rectangle, words
from reference.drawing import LINE_HEIGHT, PADDING, TITLE_HEIGHT, canvas

DATA = Path(__file__).parents[1] / "docs" / "data"
WIDTH = 960
LABEL_WIDTH = 190
NUMBER_WIDTH = 90
BAR_HEIGHT = 16
ROW_GAP = 10
LOOKS = ("c0", "c1", "c4")


def plots() -> dict[str, Any]:
    """Return a drawing function for each record, by the name of the picture."""
    return {f"bench-{path.stem}.svg": partial(plot, path) for path in sorted(DATA.glob("*.json"))}


def plot(path: Path) -> str:
    """Return a record as a picture."""
    record = json.loads(path.read_text(encoding="utf-8"))
    y = TITLE_HEIGHT
    parts = [_legend(y, record["series"], record["unit"])]
    y += 30
    largest = max(value for row in record["rows"] for value in row["values"] if value is not None)
    for row in record["rows"]:
        height = BAR_HEIGHT * len(record["series"])
        parts.append(words(PADDING, y + height // 2 + 4, row["name"], "text s12"))
        for number, value in enumerate(row["values"]):
            if value is not None:
                length = _share(value, largest, is_logarithmic=record["logarithmic"])
                parts.append(_bar(y + number * BAR_HEIGHT, length, value, LOOKS[number]))
        y += height + ROW_GAP
    scale = "The scale is logarithmic. " if record["logarithmic"] else ""
    for text in (scale + record["note"], f"{record['command']}: {record['machine']}"):
        for line in textwrap.wrap(text, 135):
            parts.append(words(PADDING, y + 12, line, "own muted"))
            y += LINE_HEIGHT
    return canvas(record["title"], _described(record), WIDTH, y + PADDING, parts)


def _legend(y: int, series: list[str], unit: str) -> str:
    parts = [words(PADDING, y + 11, unit, "own muted")]
    for number, name in enumerate(series):
        x = PADDING + LABEL_WIDTH + number * 260
        parts.append(rectangle(x, y, 14, 14, LOOKS[number], 3))
        parts.append(words(x + 22, y + 11, name, "own text"))
    return "".join(parts)


def _bar(y: int, share: float, value: float, look: str) -> str:
    room = WIDTH - 2 * PADDING - LABEL_WIDTH - NUMBER_WIDTH
    x = PADDING + LABEL_WIDTH
    length = max(round(share * room), 2)
    bar = rectangle(x, y, length, BAR_HEIGHT - 2, look, 2)
    return bar + words(x + length + 8, y + 11, _shown(value), "text")


def _share(value: float, largest: float, *, is_logarithmic: bool) -> float:
    """Return the length of a bar; logarithmic ones begin a tenth below one."""
    if is_logarithmic:
        return max(math.log10(max(value, 0.1) / 0.1) / math.log10(largest / 0.1), 0.0)
    return value / largest


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _described(record: dict[str, Any]) -> str:
    rows = (
        f"{row['name']} "
        + ", ".join(
            f"{name} {_shown(value)}"
            for name, value in zip(record["series"], row["values"], strict=True)
            if value is not None
        )
        for row in record["rows"]
    )
    return f"{record['unit']}: {'; '.join(rows)}"
