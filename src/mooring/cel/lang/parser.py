"""Text to syntax tree.

text ─tokens→ tokens ─reader→ expression as written ─builder→ syntax tree
                        │
                        └─ a token that fits nowhere: recovery reads everything again, in
                           the way of cel-go's parser, to report all errors in its words
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from mooring.cel.lang.ast import Parsed
from mooring.cel.lang.builder import Builder
from mooring.cel.lang.declarations import Macro
from mooring.cel.lang.errors import CompileError, Issue
from mooring.cel.lang.reader import Reading, UnexpectedToken, read
from mooring.cel.lang.source import NOWHERE
from mooring.cel.lang.tokens import tokenize

SIZE_MAX: Final = 100_000  # in code points


def parse(text: str, macros: Iterable[Macro]) -> Parsed:
    """Return the syntax tree of an expression, its macros expanded; raises CompileError."""
    if len(text) > SIZE_MAX:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {SIZE_MAX}"
        raise CompileError([Issue(NOWHERE, message)], text)
    reading = _read(text)
    builder = Builder(macros, reading.issues)
    expr = None if reading.is_abandoned else builder.build(reading.tree)
    if expr is None:
        raise CompileError(reading.issues, text)
    return Parsed(expr, text, builder.macro_calls)


def _read(text: str) -> Reading:
    """Return the expression as written, and what is wrong with it."""
    tokens, garbage = tokenize(text)
    if not garbage:
        with suppress(UnexpectedToken):
            return read(tokens)
    # Imported here since it takes a while and only wrong texts need it.
    from mooring.cel.lang.recovery import recover

    return recover(text, tokens, garbage)
