"""The only way to the terminal: everything that commands print goes through `echo`.

Names and messages from outside may contain control characters, and nobody thinks of that each time
something is printed. So `echo` escapes whatever is not printable, but for line breaks. Colours are
marks that only this module can make; `echo` turns them into sequences of the terminal. A test finds
every other way of printing in this package.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import Final

import click

from moorage.kit.printable import printable, printable_lines, printable_message

__all__ = [
    "ask",
    "coloured",
    "echo",
    "echo_json",
    "echo_paragraph",
    "is_asked",
    "printable",
    "printable_lines",
    "printable_message",
    "say",
    "send",
]

# Text from outside cannot contain it, as nobody knows it.
_MARK: Final = f"\0{secrets.token_hex(16)}:"
_MARKED: Final = re.compile(f"{_MARK}([a-z]+|);([01]);")
_END: Final = f"{_MARK};0;"
_UNSAFE: Final = re.compile(r"[^\x20-\x7e\n]")
_HANGING: Final = 2  # columns by which lines are indented that continue another
_LEAD_MAX: Final = 12  # columns of a lead that the lines after it are aligned with
_TEXT_MIN: Final = 20  # columns without which lines are left to the terminal


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print lines; nothing in them reaches the terminal but what can be seen."""
    first, *rest = _MARKED.split(text)
    parts = [printable_lines(first)]
    has_colour = not os.environ.get("NO_COLOR")
    for colour, is_bold, shown in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if has_colour:
            parts.append(_sequence(colour, is_bold=is_bold == "1"))
        parts.append(printable_lines(shown))
    click.echo("".join(parts), err=err, nl=nl)


def echo_paragraph(lead: str, text: str, *, lead_colour: str = "", colour: str = "") -> None:
    """Print a line; on a terminal, wrap it with a hanging indent and highlight lead and text."""
    shown = printable(lead)
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    first, *more = wrapped(shown, printable(text), columns)
    head, rest = first[: len(shown)], first[len(shown) :]
    echo(_tinted(head, lead_colour) + _tinted(rest, colour))
    for line in more:
        bare = line.lstrip(" ")
        echo(line[: len(line) - len(bare)] + _tinted(bare, colour))


def wrapped(lead: str, text: str, columns: int) -> list[str]:
    """Return lines of at most so many columns, as far as words allow; one line without columns."""
    line = f"{lead}{text}".rstrip()
    margin = len(lead) - len(lead.lstrip(" "))
    hanging = len(lead) if margin < len(lead) <= _LEAD_MAX else margin + _HANGING
    if columns - hanging < _TEXT_MIN or len(line) <= columns:
        return [line]
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _tinted(text: str, colour: str) -> str:
    return coloured(text, colour) if colour and text.strip() else text


def is_asked() -> bool:
    """Return whether somebody can answer a question."""
    return sys.stdin.isatty()


def ask(question: str) -> bool:
    """Ask a question and return whether the answer is yes; no answer is no."""
    echo(f"{question} [y/N] ", nl=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def say(text: str, *, err: bool = False) -> None:
    """Print what a program that goes on has to say; what cannot be written is dropped.

    Its output may be a file on a full disk, or a terminal that is gone.
    """
    with suppress(OSError):
        echo(text, err=err)


def echo_json(text: str) -> None:
    """Print JSON; what is not printable is escaped as JSON does, so that its meaning stays."""
    shown = _UNSAFE.sub(_json_escaped, text) if not text.isascii() or "\x7f" in text else text
    click.echo(shown)


def coloured(text: str, colour: str, *, is_bold: bool = True) -> str:
    """Return text that `echo` highlights on a terminal."""
    return f"{_MARK}{colour};{is_bold:d};{text}{_END}"


def send(sequence: str, *, err: bool = False) -> None:
    """Send a sequence of our own as it is, such as one that clears a line; if it can be sent."""
    with suppress(OSError):
        click.echo(sequence, nl=False, err=err)


def _sequence(colour: str, *, is_bold: bool) -> str:
    """Return the sequence that begins a colour, or ends all."""
    if not colour:
        return "\x1b[0m"
    return click.style("", fg=colour, bold=is_bold or None, reset=False)


def _json_escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    number = ord(character)
    if number <= 0xFFFF:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
