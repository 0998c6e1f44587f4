"""Generates the manual pages of all commands, in man(7), from the same source as cli.md."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import click

from moorage.cli.main import COMMANDS, moor
from reference.command_tree import meaning_of, names_of, options_of, usage_of, walk

MADE = '.\\" Made by `python3 dev.py docs`; do not edit.'
_ENDING = re.compile(r"\A\s*Exit status:\s*", re.MULTILINE)
_SPECIAL = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
    "…": "...",
}


def man_pages() -> dict[str, Callable[[], str]]:
    """Return the pages by the names of their files: `moor.1`, `moor-driver-run.1`."""
    return {
        f"{_page_name(context)}.1": partial(man_page, context) for context in walk(moor, "moor")
    }


def man_page(context: click.Context) -> str:
    """Return the page of a command."""
    return "\n".join(_lines(context)) + "\n"


def _page_name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _lines(context: click.Context) -> Iterator[str]:
    command, name = context.command, _page_name(context)
    yield MADE
    yield f'.TH {_text(name.upper())} 1 "" "Moorage" "Moorage"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(_summary(context))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(context.command_path)}"
    yield _text(usage_of(context).removeprefix(context.command_path).strip())
    yield ".SH DESCRIPTION"
    yield from _paragraphs(command.help or "")
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        yield from _commands(command, context)
    yield ".SH OPTIONS"
    for option in options_of(context):
        names, value = names_of(option)
        shown = ", ".join(rf"\fB{_text(each)}\fR" for each in names)
        yield f".TP\n{shown}" + (rf" \fI{_text(value)}\fR" if value else "")
        yield _text(meaning_of(option, "{}"))
    yield from _exit_status(command.epilog or "")
    yield ".SH SEE ALSO"
    yield f".BR {_text('kubectl' if context.parent is None else _page_name(context.parent))} (1)"


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield the commands of a group, in its sections."""
    below = walk(group, context.info_name or "", context.parent, is_deep=False)
    pages = {each.info_name or "": each for each in below}
    sections: Mapping[str, Iterable[str]] = getattr(group, "sections", {"": pages})
    for title, names in sections.items():
        if len(sections) > 1:
            yield f".SS {_text(title)}"
        for page in (pages[name] for name in names):
            yield f".TP\n.BR {_text(_page_name(page))} (1)"
            yield _text(_summary(page))


def _summary(context: click.Context) -> str:
    text = COMMANDS.get(context.info_name or "") if _depth(context) == 1 else None
    first = (text or context.command.help or "").replace("\b", "").strip()
    return " ".join(first.partition("\n\n")[0].split()).removesuffix(".")


def _depth(context: click.Context) -> int:
    return context.command_path.count(" ")


def _exit_status(epilog: str) -> Iterator[str]:
    """Yield the section on exit statuses; other text of the epilog becomes a section of notes."""
    if _ENDING.match(epilog):
        yield ".SH EXIT STATUS"
        yield from _paragraphs(_ENDING.sub("", epilog))
    elif epilog:
        yield ".SH NOTES"
        yield from _paragraphs(epilog)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs; those that click leaves unwrapped stay as they are."""
    for number, part in enumerate(text.replace("\r", "").split("\n\n")):
        if part.lstrip().startswith("\b"):
            block = textwrap.dedent(part.replace("\b", "").strip("\n")).strip("\n")
            yield ".PP\n.nf"
            yield from map(_text, block.split("\n"))
            yield ".fi"
        elif words := " ".join(part.split()):
            yield f".PP\n{_text(words)}" if number else _text(words)


def _text(text: str) -> str:
    """Return a text as man(7) shows it unchanged."""
    shown = "".join(_SPECIAL.get(each) or _character(each) for each in text)
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown


def _character(character: str) -> str:
    return character if character.isascii() else rf"\[u{ord(character):04X}]"
