"""Functions on strings, and `join`: `'a,b'.split(',')`, `'GPU'.lowerAscii()`.

Positions count code points. Everything is charged for the characters it looks at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from mooring.cel.lang import ranges
from mooring.cel.lang.ast import Literal
from mooring.cel.lang.declarations import (
    UNBOUNDED,
    CallEstimate,
    CostEstimate,
    EstimatedArgument,
    Function,
    Library,
    Overload,
    Range,
    RuntimeCost,
)
from mooring.cel.lang.equality import size_of
from mooring.cel.lang.library.costs import TRAVERSAL_FACTOR
from mooring.cel.lang.library.gotext import shown
from mooring.cel.lang.types import INT, STRING, Type, list_of
from mooring.cel.lang.values import EvalError

# A string that is longer can hardly be used, for what it costs; made it could be by repetition.
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
        functions=(*_lookups(), *_changes(), *_lists(), _quoting()),
    )


def limited(characters: int) -> None:
    """Raise an error if a string would become too long to be made."""
    if characters > CHARACTERS_MAX:
        raise EvalError(f"string would be longer than {CHARACTERS_MAX} characters")


# --- declarations -----------------------------------------------------------------------------

_Costs = tuple[RuntimeCost | None, CostEstimate | None]
_Row = tuple[str, tuple[Type, ...], Type, Callable[..., Any]]


def _lookups() -> tuple[Function, ...]:
    search = (_search_cost, _estimates_target(keeps_size=False))
    return (
        _members("charAt", (None, None), ("string_char_at_int", (STRING, INT), STRING, _char_at)),
        _members(
            "indexOf",
            search,
            ("string_index_of_string", (STRING, STRING), INT, _index_of),
            ("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ),
        _members(
            "lastIndexOf",
            search,
            ("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
            ("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_from),
        ),
    )


def _changes() -> tuple[Function, ...]:
    once = (_traverses_target(), _estimates_target(keeps_size=True))
    three = (STRING, STRING, STRING)
    return (
        _members("lowerAscii", once, ("string_lower_ascii", (STRING,), STRING, _lower)),
        _members("upperAscii", once, ("string_upper_ascii", (STRING,), STRING, _upper)),
        _members("trim", once, ("string_trim", (STRING,), STRING, _trim)),
        _members(
            "substring",
            once,
            ("string_substring_int", (STRING, INT), STRING, _substring_from),
            ("string_substring_int_int", (STRING, INT, INT), STRING, _substring),
        ),
        _members(
            "replace",
            (_traverses_target(times=2), _estimate_replace),
            ("string_replace_string_string", three, STRING, _replace),
            ("string_replace_string_string_int", (*three, INT), STRING, _replace),
        ),
    )


def _lists() -> tuple[Function, ...]:
    return (
        _members(
            "split",
            (_traverses_target(times=2), _estimate_split),
            ("string_split_string", (STRING, STRING), _STRINGS, _split),
            ("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
        ),
        _members(
            "join",
            (_join_cost, _estimate_join),
            ("list_join", (_STRINGS,), STRING, _join),
            ("list_join_string", (_STRINGS, STRING), STRING, _join),
        ),
    )


def _quoting() -> Function:
    overload = Overload(
        "strings_quote",
        (STRING,),
        STRING,
        _quote,
        runtime_cost=_traverses_target(),
        estimate=_estimate_quote,
    )
    return Function("strings.quote", (overload,))


def _members(name: str, costs: _Costs, *rows: _Row) -> Function:
    """Return a function all of whose overloads are members and cost the same."""
    return Function(name, tuple(Overload(*row, True, *costs) for row in rows))


# --- what they do -----------------------------------------------------------------------------


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


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


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
    return text.rfind(part, 0, start + len(part))


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
        limited(len(text) + growth * (found if times < 0 else min(found, times)))
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


# --- what they cost ---------------------------------------------------------------------------


def _traverses_target(*, times: int = 1) -> RuntimeCost:
    def cost(args: tuple[Any, ...], _result: Any) -> int:
        return math.ceil(float(size_of(args[0])) * times * TRAVERSAL_FACTOR)

    return cost


def _search_cost(args: tuple[Any, ...], _result: Any) -> int:
    return _tree_cost(args[0])


def _tree_cost(value: Any) -> int:
    """Return the cost of looking at all of a value: of texts by bytes, rounded down."""
    match value:
        case str():
            return int(len(value.encode("utf-8", "surrogateescape")) * TRAVERSAL_FACTOR)
        case bytes():
            return int(len(value) * TRAVERSAL_FACTOR)
        case list() | tuple():
            return sum(map(_tree_cost, value))
        case dict():
            return sum(_tree_cost(key) + _tree_cost(item) for key, item in value.items())
        case _:
            return 1


def _join_cost(_args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(float(size_of(result)) * 2 * TRAVERSAL_FACTOR)


def _estimates_target(*, keeps_size: bool) -> CostEstimate:
    def estimate(
        target: EstimatedArgument | None, _args: tuple[EstimatedArgument, ...]
    ) -> CallEstimate | None:
        if target is None:
            return None
        cost = ranges.scale(target.size, TRAVERSAL_FACTOR)
        return CallEstimate(cost, target.size if keeps_size else None)

    return estimate


def _estimate_replace(
    target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    if target is None:
        return None
    size, old, new = target.size, args[0].size, args[1].size
    most, most_kept = _most_replacements(size, old, new)
    least, least_kept = _least_replacements(size, old, new)
    result = ranges.add(ranges.multiply(Range(least, most), new), Range(least_kept, most_kept))
    return CallEstimate(ranges.scale(size, 2 * TRAVERSAL_FACTOR), result)


def _most_replacements(size: Range, old: Range, new: Range) -> tuple[int, int]:
    """Return how often to replace, and how much to keep, for the longest result."""
    if old.low == 0:  # Every character may get a replacement before and after it.
        return min(size.high + 1, UNBOUNDED), size.high
    if new.high <= old.low:
        return 0, size.high
    return _quotient(size.high, old.low), 0


def _least_replacements(size: Range, old: Range, new: Range) -> tuple[int, int]:
    """Return how often to replace, and how much to keep, for the shortest result."""
    if old.high == 0:
        return min(size.low + 1, UNBOUNDED), size.low
    if old.high <= new.low:
        return 0, size.low
    return _quotient(size.low, old.high), 0


def _quotient(number: int, divisor: int) -> int:
    return min(math.ceil(float(number) / float(divisor)), UNBOUNDED)


def _estimate_split(
    target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    """Return the estimate for `split`; at worst every character is a part."""
    if target is None:
        return None
    parts_max = target.size.high
    if len(args) > 1:
        match args[1].expr:
            case Literal(value=int() as limit) if type(limit) is int:
                parts_max = limit % 2**64
    cost = ranges.scale(target.size, 2 * TRAVERSAL_FACTOR)
    return CallEstimate(cost, Range(0, parts_max))


def _estimate_join(
    target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    """Return the estimate for `join`; nothing is known of how long the elements are."""
    if target is None:
        return None
    count = target.size
    size = ranges.multiply(count, ranges.UNKNOWN) if target.type.params else ranges.NOTHING
    if args:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = ranges.add(size, ranges.multiply(args[0].size, separators))
    return CallEstimate(ranges.scale(size, TRAVERSAL_FACTOR), size)


def _estimate_quote(
    _target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    """Return the estimate for `quote`; at worst every character is escaped.

    The size of the result runs over, as it does in the original.
    """
    size = args[0].size
    result = Range((size.low + 2) % 2**64, (size.high * 2 + 2) % 2**64)
    return CallEstimate(ranges.scale(size, TRAVERSAL_FACTOR), result)
