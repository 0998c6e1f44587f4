"""The elements of SVG that the picture is made of, and how they look in light and in dark.

Looks are classes with plain colours, so that viewers without variables show the light ones.
"""

from __future__ import annotations

from mooring.insight.topology.palette import COLOURS, PATTERNS, TEXT, Style
from mooring.insight.topology.text import escaped, fitted

FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"

# class: what it is, light, dark
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
    """Return a line of our own words, or of text that fits already."""
    return f'<text class="{look}" x="{x}" y="{y}">{escaped(text)}</text>' if text else ""


def name(x: int, y: int, text: str, look: str, *, width: int, font_size: int) -> str:
    """Return a line of text from outside, no wider than its room."""
    return words(x, y, fitted(text, width, font_size), f"{look} s{font_size}")


def tooltip(*lines: str) -> str:
    """Return what is shown when the pointer rests on something."""
    return f"<title>{escaped(chr(10).join(lines))}</title>"
