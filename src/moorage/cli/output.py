"""What commands print: tables as kubectl aligns them, JSON, YAML, ages, progress on long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import click
import msgspec

from moorage.api.timestamp import Timestamp
from moorage.cli.command_classes import option_with_default
from moorage.cli.terminal import (
    coloured,
    echo,
    echo_json,
    printable,
    printable_lines,
    printable_message,
    send,
)
from moorage.insight.rows import csv_text

if TYPE_CHECKING:
    from moorage.api.resource.v1 import DeviceAttribute

NOTHING = "-"
CELL_MAX = 120  # characters of a cell in a table that is not wide


class Cell(NamedTuple):
    """The text of a table cell, with a colour for terminals."""

    text: str
    colour: str | None = None


Row = Sequence[str | Cell]


def print_table(header: Sequence[str], rows: Iterable[Row], *, is_wide: bool) -> None:
    """Print rows under a header, in aligned columns."""
    cells = [[_cell(cell, is_wide=is_wide) for cell in row] for row in rows]
    widths = [
        max(len(name), max((len(row[number].text) for row in cells), default=0))
        for number, name in enumerate(header)
    ]
    for line in (list(map(Cell, header)), *cells):
        echo("   ".join(_padded(line, widths)).rstrip())


def print_tree(tree: Any, output: str = "json") -> None:
    """Print a value as JSON or YAML."""
    if output == "yaml":
        echo(yaml_text([msgspec.to_builtins(tree, enc_hook=_number)]))
    else:
        echo_json(msgspec.json.format(_json(tree)).decode())


def _json(tree: Any) -> bytes:
    """Return a value as JSON; bytes of file names that are not UTF-8 become escapes."""
    try:
        return msgspec.json.encode(tree, enc_hook=_number)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(tree, enc_hook=_number)))


def _encodable(tree: Any) -> Any:
    if isinstance(tree, str):
        return tree.encode("utf-8", "backslashreplace").decode()
    if isinstance(tree, dict):
        return {_encodable(name): _encodable(value) for name, value in tree.items()}
    return list(map(_encodable, tree)) if isinstance(tree, list | tuple) else tree


def _number(value: object) -> float:
    """Return a number of a manifest, which remembers its text."""
    assert isinstance(value, float)
    return float(value)


def yaml_text(trees: Sequence[Any]) -> str:
    """Return values as YAML documents; with escapes if there is anything that is not printable."""
    from moorage.api.documents.yaml_writer import dump_yaml  # few commands need it

    text = dump_yaml(trees).rstrip("\n")
    if text == printable_lines(text):
        return text
    return dump_yaml(trees, is_ascii=True).rstrip("\n")


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def warn(message: str) -> None:
    """Print a warning; names in it may hold anything."""
    echo(f"{coloured('warning', 'yellow')}: {printable_message(message)}", err=True)


def complain(message: str, *own: str) -> None:
    """Print an error; names in it may hold anything. Lines that begin as `own` are not indented."""
    echo(f"{coloured('error', 'red')}: {printable_message(message, *own)}", err=True)


def by_pool(devices: Iterable[tuple[str, str]]) -> str:
    """Return pools with their devices: `driver/pool/gpu-0,gpu-1; driver/other/gpu-0`."""
    pools: dict[str, list[str]] = {}
    for pool, device in devices:
        pools.setdefault(pool, []).append(device)
    return "; ".join(f"{pool}/{','.join(names)}" for pool, names in pools.items())


def attribute_texts(attribute: DeviceAttribute) -> list[str]:
    """Return the value of an attribute as text, or each element of a list."""
    from moorage.api.codec import to_tree

    found: list[str] = []
    for content in to_tree(attribute).values():
        values = content if isinstance(content, list | tuple) else [content]
        found += (str(each).lower() if isinstance(each, bool) else str(each) for each in values)
    return found


def age(then: Timestamp | None, now: Timestamp) -> str:
    """Return an age as kubectl prints it: 45s, 7m, 5h, 3d."""
    if then is None:
        return "<unknown>"
    seconds = int((now.instant - then.instant).total_seconds())
    if seconds < 0:
        return "<future>"
    for unit, size, most in (("s", 1, 120), ("m", 60, 120 * 60), ("h", 3600, 48 * 3600)):
        if seconds < most:
            return f"{seconds // size}{unit}"
    days = seconds // 86400
    return f"{days}d" if days < 730 else f"{days // 365}y"


def _cell(cell: str | Cell, *, is_wide: bool) -> Cell:
    found = Cell(cell) if isinstance(cell, str) else cell
    text = printable(found.text) or NOTHING
    if not is_wide and len(text) > CELL_MAX:
        text = f"{text[: CELL_MAX - 1]}…"
    return Cell(text, found.colour)


def _padded(line: Sequence[Cell], widths: Sequence[int]) -> Iterator[str]:
    for cell, width in zip(line, widths, strict=True):
        padding = " " * (width - len(cell.text))
        shown = coloured(cell.text, cell.colour, is_bold=False) if cell.colour else cell.text
        yield shown + padding


# --- options ----------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


FORMATS = ("table", "wide", "json", "yaml", "name", "csv")  # of every command that prints data
REPORT_FORMATS = ("sarif", "junit", "github")  # for CI systems and editors
REPORTS_TEXT = "sarif, junit and github are reports for CI systems"


def output_option(
    *others: str, default: str = "table", names: str = "", wide: str = "", text: str = ""
) -> Callable[[F], F]:
    """Return the option -o: the formats of all commands, and others of this one.

    Its help says what `wide` prints and what `names` are of, and the rest of the text.
    """
    parts = (
        f"wide {wide}" if wide else "",
        f"name prints {names}" if names else "",
        *([text] if text else []),
    )
    choices = (default, *(each for each in (*FORMATS, *others) if each != default))
    return option_with_default(
        "-o",
        "--output",
        type=click.Choice(choices),
        default=default,
        help=f"{'; '.join(filter(None, ('Output format', *parts)))}.",
    )


def print_answer(
    output: str,
    *,
    table: Callable[[bool], None],
    document: Callable[[], Any],
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    names: Callable[[], Iterable[str]],
    columns: Sequence[str] = (),
) -> None:
    """Print an answer in one of the formats of all commands.

    table     prints it for people, wide or not
    document  is the JSON and YAML
    rows      are the lines of CSV, with these columns and others
    names     are the objects that it is about, as KIND/NAME
    """
    match output:
        case "json" | "yaml":
            print_tree(document(), output)
        case "csv":
            echo(csv_text(list(rows()), columns), nl=False)
        case "name":
            for name in names():
                echo(printable(name))
        case _:
            table(output == "wide")


def report_options(function: F) -> F:
    """Add the options that control how findings are printed."""
    quiet = click.option(
        "-q", "--quiet", is_flag=True, help="Print findings only, without the summary."
    )
    names = "the objects with findings"
    option = output_option("text", *REPORT_FORMATS, default="text", names=names, text=REPORTS_TEXT)
    return quiet(option(function))


# --- progress ---------------------------------------------------------------------------------

AFTER_S = 1.0
EVERY_S = 0.2
WIDTH_MAX = 79
CLEAR = "\r\x1b[K"


class Progress:
    """Shows the progress of work that takes long, and clears it at the end."""

    def __init__(self, what: str = "objects") -> None:
        self._what = what
        self._is_watched = sys.stderr.isatty()
        self._next_s = time.monotonic() + AFTER_S
        self._count = 0
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """Report how much is done, of how much."""
        self._show(f"{self._what}: {done:,} of {total:,}" if total else f"{self._what} …")

    def stage(self, what: str) -> Self:
        """Go on to another part of the work."""
        self._what = what
        return self

    def tick(self, source: str) -> None:
        """Count one more of an unknown total."""
        self._count += 1
        self._show(f"{self._count:,} {self._what} … {source}")

    def clear(self) -> None:
        """Clear the line."""
        if self._is_shown:
            send(CLEAR, err=True)
            self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Clear the line, even if the work failed."""
        self.clear()

    def _show(self, text: str) -> None:
        if self._is_watched and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            send(f"{CLEAR}{printable(text)[:WIDTH_MAX]}", err=True)
            self._is_shown = True
