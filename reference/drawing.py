"""The common parts of the documentation's drawings: canvas, boxes with text, arrows, as SVG.

They have the style sheet of the topology picture, so they are readable in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moorage.insight.topology.elements import escaped, rectangle, stylesheet, words

PADDING = 24
TITLE_HEIGHT = 48
LINE_HEIGHT = 15

_ARROW_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path class="mark" d="M0 0L8 4L0 8z"/></marker>'
)
_ARROW_LOOK = ".arrow{fill:none;stroke:#4a5561;stroke-width:1.5}"
_ARROW_LOOK_DARK = "@media (prefers-color-scheme:dark){.arrow{stroke:#b5c0cb}}"


class Box(NamedTuple):
    """A box with a heading and lines below it."""

    x: int
    y: int
    width: int
    height: int
    look: str
    heading: str
    lines: Sequence[str] = ()

    @property
    def drawn(self) -> str:
        """The box as SVG."""
        # Text on a colour is dark in light and dark alike.
        ink = "on" if self.look.startswith("c") else "text"
        parts = [rectangle(self.x, self.y, self.width, self.height, self.look, 6)]
        parts.append(words(self.x + 12, self.y + 21, self.heading, f"{ink} bold s12"))
        for number, line in enumerate(self.lines):
            y = self.y + 21 + (number + 1) * LINE_HEIGHT
            parts.append(words(self.x + 12, y, line, f"own {ink}"))
        return "".join(parts)


def arrow(*points: tuple[int, int]) -> str:
    """Return a line through some points with a head at its end."""
    path = "L".join(f"{x} {y}" for x, y in points)
    return f'<path class="arrow" d="M{path}" marker-end="url(#head)"/>'


def canvas(title: str, text: str, width: int, height: int, parts: Iterable[str]) -> str:
    """Return a picture with a title, and a description for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title text">'
        f'<title id="title">{escaped(title)}</title><desc id="text">{escaped(text)}</desc>'
        f"<style>{stylesheet()}{_ARROW_LOOK}{_ARROW_LOOK_DARK}</style><defs>{_ARROW_HEAD}</defs>"
        f"{rectangle(0, 0, width, height, 'paper')}"
        f"{words(PADDING, 34, title, 'own strong bold s14')}{''.join(parts)}</svg>\n"
    )
