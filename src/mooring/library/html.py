"""Results as HTML for notebooks: small tables without scripts; everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from mooring.kit.printable import printable

ROWS_SHOWN_MAX: Final = 200
_TABLE: Final = "border-collapse:collapse;font-size:90%"
_CELL: Final = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"


def text(value: object) -> str:
    """Return a value as text of HTML: nothing of it is markup, nothing moves other text."""
    return escape(printable(str(value)), quote=True)


def paragraph(value: object, *, is_strong: bool = False) -> str:
    """Return a paragraph."""
    inner = f"<strong>{text(value)}</strong>" if is_strong else text(value)
    return f"<p>{inner}</p>"


def ordered_list(items: Iterable[object]) -> str:
    """Return a numbered list; nothing if it is empty."""
    found = "".join(f"<li>{text(each)}</li>" for each in items)
    return f"<ol>{found}</ol>" if found else ""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with the first rows, and how many more there are."""
    found = list(rows)
    head = "".join(f'<th style="{_CELL}">{text(name)}</th>' for name in header)
    body = "".join(_row(row) for row in found[:ROWS_SHOWN_MAX])
    more = len(found) - ROWS_SHOWN_MAX
    rest = paragraph(f"and {more:,} more rows") if more > 0 else ""
    return (
        f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}'
    )


def _row(cells: Iterable[object]) -> str:
    return (
        "<tr>"
        + "".join(
            f'<td style="{_CELL}">{text("" if cell is None else cell)}</td>' for cell in cells
        )
        + "</tr>"
    )


def block(*parts: str) -> str:
    """Return parts that are HTML already as one block."""
    return f'<div class="mooring">{"".join(parts)}</div>'
