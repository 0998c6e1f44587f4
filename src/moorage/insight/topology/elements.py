"""The SVG elements of the picture, their colours, and text that fits into them.

Looks are classes with plain colours, so that viewers without variables show the light ones.

An owner's style is a colour and a pattern. Its name decides where the search for a free style
begins, so an owner keeps its colour from picture to picture unless another owner has it.
Colour-blind people can distinguish the colours, and black text is readable on all of them.

Names are set in a monospaced font, so their width is known.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from moorage.insight.topology.model import Item, Owner, Topology

LENGTH_MAX = 512  # of one name in a tooltip; Kubernetes' own are shorter
CHARACTER_WIDTH = 0.62  # of the font size; the widest of the fonts we ask for
_ODD = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\n": "&#10;"}
)


FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"

# The scheme "light" of Paul Tol, made for cells with black text; its grey and olive are left out.
COLOURS = (
    "#77aadd",
    "#ee8866",
    "#eedd88",
    "#ffaabb",
    "#44bb99",
    "#bbcc33",
    "#99ddff",
)

# Lines over the colour; the first is none.
PATTERNS = (
    "",
    "M0 8L8 0M-2 2L2 -2M6 10L10 6",
    "M0 4H8",
    "M0 0L8 8M-2 6L2 10M6 -2L10 2",
    "M4 0V8",
)

TEXT = "#14171a"

# class: meaning, light, dark
_LOOKS = (
    ("paper", "fill:#ffffff", "fill:#0d1117"),
    ("machine", "fill:#f3f5f8;stroke:#aab4bf", "fill:#151b23;stroke:#465160"),
    ("socket", "fill:#ffffff;stroke:#cfd6de", "fill:#1c232d;stroke:#3a4452"),
    ("numa", "fill:#f3f5f8;stroke:#d9dfe6", "fill:#151b23;stroke:#313a46"),
    ("root", "fill:#e6eaef;stroke:#e6eaef", "fill:#262f3b;stroke:#262f3b"),
    ("cross", "stroke:#39434e", "stroke:#7d8996"),
    ("free", "fill:#ffffff;stroke:#9aa5b1", "fill:#10161e;stroke:#5d6a79"),
    ("gone", "fill:none;stroke:#9aa5b1", "fill:none;stroke:#5d6a79"),
    ("blocked", "fill:#d5dbe2;stroke:#9aa5b1", "fill:#38434f;stroke:#5d6a79"),
    ("track", "fill:#dde2e8", "fill:#38434f"),
    ("rim", "fill:none;stroke:#55606c", "fill:none;stroke:#0d1117"),
    ("strong", "fill:#1a1f26", "fill:#eef2f6"),
    ("text", "fill:#39434e", "fill:#c9d2dc"),
    ("muted", "fill:#5c6773", "fill:#9aa6b3"),
    ("mark", "fill:#4a5561", "fill:#b5c0cb"),
    ("alarm", "fill:#b3261e", "fill:#ff8a80"),
    ("letter", "fill:#ffffff", "fill:#0d1117"),
)

# Text on the colour of an owner is dark in both.
_FIXED = (
    f"text{{font-family:{FONTS};font-size:11px}}",
    ".own{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',sans-serif}",
    ".bold{font-weight:600}.s9{font-size:9px}.s10{font-size:10px}.s12{font-size:12px}",
    ".s14{font-size:14px}.s22{font-size:22px}.middle{text-anchor:middle}.last{text-anchor:end}",
    ".gone{stroke-dasharray:3 2}",
    f".on{{fill:{TEXT}}}",
    "".join(f".c{number}{{fill:{colour}}}" for number, colour in enumerate(COLOURS)),
    "".join(f".p{number}{{fill:url(#p{number})}}" for number in range(1, len(PATTERNS))),
)


def stylesheet() -> str:
    """Return the style sheet of the picture."""
    light = "".join(f".{name}{{{look}}}" for name, look, _ in _LOOKS)
    dark = "".join(f".{name}{{{look}}}" for name, _, look in _LOOKS)
    return f"{''.join(_FIXED)}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def patterns() -> str:
    """Return the patterns that fills refer to."""
    return "".join(
        f'<pattern id="p{number}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" fill="none" stroke="{TEXT}" stroke-opacity=".3"/></pattern>'
        for number, path in enumerate(PATTERNS)
        if number
    )


def rectangle(x: int, y: int, width: int, height: int, look: str, radius: int = 0) -> str:
    """Return a box."""
    rounded = f' rx="{radius}"' if radius else ""
    return f'<rect class="{look}" x="{x}" y="{y}" width="{width}" height="{height}"{rounded}/>'


def filled(x: int, y: int, width: int, height: int, style: Style, radius: int = 0) -> str:
    """Return a box with the colour and pattern of an owner."""
    plain = rectangle(x, y, width, height, f"c{style.colour}", radius)
    if not style.pattern:
        return plain
    return plain + rectangle(x, y, width, height, f"p{style.pattern}", radius)


def words(x: int, y: int, text: str, look: str) -> str:
    """Return a line of text that fits."""
    return f'<text class="{look}" x="{x}" y="{y}">{escaped(text)}</text>' if text else ""


def name(x: int, y: int, text: str, look: str, *, width: int, font_size: int) -> str:
    """Return a line of text from outside, shortened to a width."""
    return words(x, y, fitted(text, width, font_size), f"{look} s{font_size}")


def tooltip(*lines: str) -> str:
    """Return a tooltip."""
    return f"<title>{escaped(chr(10).join(lines))}</title>"


def clean(text: str) -> str:
    """Return the text in one line, with a replacement for each unprintable character."""
    shown = text[:LENGTH_MAX] + ("…" if len(text) > LENGTH_MAX else "")
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join("\ufffd" if unicodedata.category(each) in _ODD else each for each in shown)


def escaped(text: str) -> str:
    """Return the text escaped for element content and attributes."""
    return text.translate(_ESCAPES)


def fitted(text: str, width: int, font_size: int) -> str:
    """Return the clean text, without its middle if it is too wide."""
    text = clean(text)
    room = int(width / (font_size * CHARACTER_WIDTH))
    if columns(text) <= room:
        return text
    if room <= 1:
        return "…" if room == 1 else ""
    tail = _taken(text[::-1], (room - 1) // 2)[::-1]
    head = _taken(text, room - 1 - columns(tail))
    return f"{head}…{tail}"


def columns(text: str) -> int:
    """Return the width of the text in characters; those of other fonts may count twice."""
    if text.isascii():
        return len(text)
    return sum(1 if each < "\u0250" or each == "…" else 2 for each in text)


def joined(parts: Sequence[str], width: int, font_size: int) -> str:
    """Return as many parts as fit, and how many more there are."""
    text = ""
    for index, part in enumerate(map(clean, parts)):
        longer = f"{text} · {part}" if text else part
        left = len(parts) - index - 1
        more = f" · {left} more" if left else ""
        if (columns(longer) + columns(more)) * font_size * CHARACTER_WIDTH > width:
            return f"{text} · {left + 1} more" if text else fitted(part, width, font_size)
        text = longer
    return text


def _taken(text: str, room: int) -> str:
    used = 0
    for index, each in enumerate(text):
        used += columns(each)
        if used > room:
            return text[:index]
    return text


def listed(names: Sequence[str], limit: int) -> str:
    """Return some names, and how many more there are."""
    more = f", {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


class Style(NamedTuple):
    """The fill of an owner's devices: the numbers of a colour and a pattern."""

    colour: int
    pattern: int


def styles_of(owners: Iterable[Owner]) -> dict[Owner, Style]:
    """Return the style of each owner."""
    free = [set(range(len(COLOURS))) for _ in PATTERNS]
    found: dict[Owner, Style] = {}
    for index, owner in enumerate(sorted(owners)):
        pattern = index // len(COLOURS) % len(PATTERNS)
        if not free[pattern]:
            free[pattern] = set(range(len(COLOURS)))
        wanted = crc32(str(owner).encode("utf-8", "surrogatepass")) % len(COLOURS)
        colour = min(free[pattern], key=lambda each: (each - wanted) % len(COLOURS))
        free[pattern].discard(colour)
        found[owner] = Style(colour, pattern)
    return found


class OwnedDevice(NamedTuple):
    """A device of an owner, or a share of one."""

    node: str  # "" for devices of no single node
    item: Item


class TopologyIndex:
    """All owners, drivers and devices of a topology, numbered and counted."""

    def __init__(self, topology: Topology) -> None:
        items = list(topology.items())
        self.devices = len(items)
        self.free = sum(item.is_free for item in items)
        self.drivers = {name: n for n, name in enumerate(sorted({i.driver for i in items}))}
        self.owners = {owner: number for number, owner in enumerate(topology.owners)}
        self.styles: dict[Owner, Style] = styles_of(topology.owners)
        self.held: defaultdict[Owner, list[OwnedDevice]] = defaultdict(list)
        for machine in topology.machines:
            self._enter(machine.name, machine.items())
        for box in topology.elsewhere:
            self._enter("", box.items())

    def _enter(self, node: str, items: Iterable[Item]) -> None:
        for item in items:
            for owner in item.owners:
                self.held[owner].append(OwnedDevice(node, item))


def free_by_driver(items: Iterable[Item]) -> list[tuple[str, int, int]]:
    """Return the drivers, with their numbers of free and of all devices."""
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for item in items:
        total[item.driver] += 1
        free[item.driver] += item.is_free
    return [(driver, free[driver], total[driver]) for driver in sorted(total)]
