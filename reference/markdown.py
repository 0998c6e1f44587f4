"""Pages and tables of Markdown, for the reference pages that are made from the code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MADE = "<!-- Made from the code by `python3 dev.py docs`. Do not edit. -->"


def page_of(sections: Iterable[str]) -> str:
    """Return a page of these sections."""
    return "\n\n".join(sections) + "\n"


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
