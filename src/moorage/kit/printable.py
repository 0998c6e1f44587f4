"""Text from outside, made safe for terminals and logs.

Names, labels, annotations, messages and file names come from anywhere. A control character among
them could move the cursor, change what was printed before, retitle the window or write a second log
line. So every such text passes through here, in the command line (`moorage.cli.terminal`) and in
the logs of all programs (`LineFormatter`).

    printable        one line: whatever is not printable is escaped, line breaks too
    printable_lines  several lines: line breaks stay
    printable_message  the same, but later lines are indented

What is printable is decided by Python: not the control characters C0 and C1, not those that turn
the direction of text, no separators but the space, nothing unassigned or private.
"""

from __future__ import annotations

import logging
from typing import Final

# So that no line of a traceback can look like a line of its own.
_CONTINUATION: Final = "    | "


def printable(text: str) -> str:
    """Return the text in one line, with everything escaped that is not printable."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def printable_lines(text: str) -> str:
    """Return lines of text, with everything else escaped that is not printable."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_message(text: str, *own: str) -> str:
    """Return a message whose later lines are indented: none looks like a message of its own.

    Lines that begin as one of `own` are known to be ours.
    """
    if text.isprintable():
        return text
    first, *others = map(printable, text.split("\n"))
    kept = (" ", *own)
    return "\n".join((first, *(e if not e or e.startswith(kept) else f"  {e}" for e in others)))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


class LineFormatter(logging.Formatter):
    """Formats each record as one line that no name can break; tracebacks follow, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line of a record."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802
        """Return a traceback, indented."""
        return _indented(super().formatException(ei))  # type: ignore[arg-type]

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        """Return a stack, indented."""
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    return "\n".join(f"{_CONTINUATION}{printable(line)}" for line in text.split("\n"))


def log_in_lines() -> None:
    """Have programs that do not configure logging log in lines that no name can break, too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LineFormatter("%(message)s"))


def log_to_stderr(level: int, layout: str, *filters: logging.Filter) -> None:
    """Log to standard error in lines that no name can break; filters may complete records."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(layout))
    for each in filters:
        handler.addFilter(each)
    logging.basicConfig(level=level, handlers=[handler])
