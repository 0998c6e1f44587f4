"""Functions on strings, and `join`: `'a,b'.split(',')`, `'GPU'.lowerAscii()`.

Positions count code points. Everything is charged for the characters it looks at.
"""

from __future__ import annotations

import math
from typing import Any, Final

from moorage.cel.lang.ast import Literal
from moorage.cel.lang.costs import (
    NOTHING,
    UNBOUNDED,
    UNKNOWN,
    Argument,
    CallEstimate,
    Range,
    add,
    deep_traversal_cost,
    multiply,
    traversal,
    traversal_cost,
    traverses_first,
)
from moorage.cel.lang.environment import Function, Library, functions_of, members_of
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.types import INT, STRING, list_of
from moorage.cel.lang.unpaid_work import count_unpaid_text
from moorage.cel.lang.values import shown

# A longer string costs too much to be used, but repetition could make it.
CHARACTERS_MAX: Final = 2**23

_STRINGS: Final = list_of(STRING)
# Unicode's White_Space; Python's own idea of it has four control characters more.
_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER: Final = str.maketrans(_UPPER, _UPPER.lower())
_TO_UPPER: Final = str.maketrans(_UPPER.lower(), _UPPER)
_STRAY_BYTES: Final = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")
_QUOTE_ESCAPES: Final = str.maketrans(
    {
        "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t",
        "\v": r"\v", "\\": r"\\", '"': r"\"",
    }
)  # fmt: skip


def library() -> Library:
    """Return the library `cel.lib.ext.strings`, version 2; `format` has a module of its own."""
    return Library(
        "cel.lib.ext.strings",
        functions=_functions(),
    )


def limited(characters: int) -> None:
    """Raise an error if a string would become too long to be made."""
    if characters > CHARACTERS_MAX:
        raise EvalError(f"string would be longer than {CHARACTERS_MAX} characters")


def _functions() -> tuple[Function, ...]:
    one, two, three = (STRING,), (STRING, STRING), (STRING, STRING, STRING)
    search = (lambda args, _: deep_traversal_cost(args[0]), traverses_first()[1])
    once = traverses_first(keeps_size=True)
    replacing = (traverses_first(times=2)[0], _estimate_replace)
    splitting = (traverses_first(times=2)[0], _estimate_split)
    return (
        members_of("charAt", ("string_char_at_int", (STRING, INT), STRING, _char_at)),
        members_of(
            "indexOf",
            ("string_index_of_string", two, INT, _index_of),
            ("string_index_of_string_int", (*two, INT), INT, _index_of),
            costs=search,
        ),
        members_of(
            "lastIndexOf",
            ("string_last_index_of_string", two, INT, _last_index),
            ("string_last_index_of_string_int", (*two, INT), INT, _last_index_from),
            costs=search,
        ),
        members_of("lowerAscii", ("string_lower_ascii", one, STRING, _lower), costs=once),
        members_of("upperAscii", ("string_upper_ascii", one, STRING, _upper), costs=once),
        members_of("trim", ("string_trim", one, STRING, _trim), costs=once),
        members_of(
            "substring",
            ("string_substring_int", (STRING, INT), STRING, _substring_from),
            ("string_substring_int_int", (STRING, INT, INT), STRING, _substring),
            costs=once,
        ),
        members_of(
            "replace",
            ("string_replace_string_string", three, STRING, _replace),
            ("string_replace_string_string_int", (*three, INT), STRING, _replace),
            costs=replacing,
        ),
        members_of(
            "split",
            ("string_split_string", two, _STRINGS, _split),
            ("string_split_string_int", (*two, INT), _STRINGS, _split),
            costs=splitting,
        ),
        members_of(
            "join",
            ("list_join", (_STRINGS,), STRING, _join),
            ("list_join_string", (_STRINGS, STRING), STRING, _join),
            costs=(lambda _, result: traversal_cost(result, 2), _estimate_join),
        ),
        functions_of(
            "strings.quote",
            ("strings_quote", one, STRING, _quote),
            costs=(traverses_first()[0], _estimate_quote),
        ),
    )


# --- functions ------------------------------------------------------------------------------------


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _last_index_from(text: str, part: str, start: int) -> int:
    """Return where the part is found last, beginning at `start` or before.

    From beyond the end nothing is found, although all of the string lies before.
    """
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    return _last_index(text[: start + len(part)], part)


def _last_index(text: str, part: str) -> int:
    """Return where the last occurrence begins; from the front, as `rfind` takes quadratic time."""
    found = text[::-1].find(part[::-1])
    return found if found < 0 else len(text) - found - len(part)


def _lower(text: str) -> str:
    return text.translate(_TO_LOWER)


def _upper(text: str) -> str:
    return text.translate(_TO_UPPER)


def _trim(text: str) -> str:
    return text.strip(_SPACES)


def _replace(text: str, old: str, new: str, times: int = -1) -> str:
    growth = len(new) - len(old)
    if growth > 0:
        found = text.count(old)
        characters = len(text) + growth * (found if times < 0 else min(found, times))
        limited(characters)
        count_unpaid_text(characters)
    return text.replace(old, new, times)


def _substring_from(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def _split(text: str, separator: str, parts_max: int = -1) -> list[str]:
    if parts_max == 0:
        return []
    if separator:
        return text.split(separator, parts_max - 1 if parts_max > 0 else -1)
    if 0 < parts_max < len(text):
        return [*text[: parts_max - 1], text[parts_max - 1 :]]
    return list(text)


def _join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise EvalError(f"join: invalid input: {shown(part)}")
    limited(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _quote(text: str) -> str:
    return '"' + text.translate(_STRAY_BYTES).translate(_QUOTE_ESCAPES) + '"'


def _out_of_range(position: int) -> EvalError:
    return EvalError(f"index out of range: {position}")


# --- costs ------------------------------------------------------------------------------------


def _estimate_replace(target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate | None:
    if target is None:
        return None
    size, old, new = target.size, args[0].size, args[1].size
    most, most_kept = _most_replacements(size, old, new)
    least, least_kept = _least_replacements(size, old, new)
    result = add(multiply(Range(least, most), new), Range(least_kept, most_kept))
    return CallEstimate(traversal(size, 2), result)


def _most_replacements(size: Range, old: Range, new: Range) -> tuple[int, int]:
    """Return the number of replacements, and the kept size, of the longest result."""
    if old.low == 0:  # Every character may get a replacement before and after it.
        return min(size.high + 1, UNBOUNDED), size.high
    if new.high <= old.low:
        return 0, size.high
    return _quotient(size.high, old.low), 0


def _least_replacements(size: Range, old: Range, new: Range) -> tuple[int, int]:
    """Return the number of replacements, and the kept size, of the shortest result."""
    if old.high == 0:
        return min(size.low + 1, UNBOUNDED), size.low
    if old.high <= new.low:
        return 0, size.low
    return _quotient(size.low, old.high), 0


def _quotient(number: int, divisor: int) -> int:
    return min(math.ceil(float(number) / float(divisor)), UNBOUNDED)


def _estimate_split(target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate | None:
    """Return the estimate for `split`; at worst every character is a part."""
    if target is None:
        return None
    parts_max = target.size.high
    if len(args) > 1:
        match args[1].expr:
            case Literal(value=int() as limit) if type(limit) is int:
                parts_max = limit % 2**64
    cost = traversal(target.size, 2)
    return CallEstimate(cost, Range(0, parts_max))


def _estimate_join(target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate | None:
    """Return the estimate for `join`; the lengths of the elements are unknown."""
    if target is None:
        return None
    count = target.size
    size = multiply(count, UNKNOWN) if target.type.params else NOTHING
    if args:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = add(size, multiply(args[0].size, separators))
    return CallEstimate(traversal(size), size)


def _estimate_quote(_target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate | None:
    """Return the estimate for `quote`; at worst every character is escaped.

    The size of the result runs over, as it does in the original.
    """
    size = args[0].size
    result = Range((size.low + 2) % 2**64, (size.high * 2 + 2) % 2**64)
    return CallEstimate(traversal(size), result)
