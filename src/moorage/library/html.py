"""Results as HTML for notebooks: small tables without scripts, with all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from moorage.kit.printable import printable

ROWS_SHOWN_MAX: Final = 200
_TABLE: Final = "border-collapse:collapse;font-size:90%"
_CELL: Final = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"


def text(value: object) -> str:
    """Return a value as escaped text that cannot contain markup or move other text."""
    return escape(printable(str(value)), quote=True)


def paragraph(value: object, *, is_strong: bool = False) -> str:
    """Return a paragraph."""
    inner = f"<strong>{text(value)}</strong>" if is_strong else text(value)
    return f"<p>{inner}</p>"


def ordered_list(items: Iterable[object]) -> str:
    """Return a numbered list, or an empty text for no items."""
    found = "".join(f"<li>{text(each)}</li>" for each in items)
    return f"<ol>{found}</ol>" if found else ""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of the first rows, which says how many more there are."""
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
    """Return one block of several HTML parts."""
    return f'<div class="moorage">{"".join(parts)}</div>'
