"""Regular expressions with the syntax, the meaning and the error messages of Go's regexp.

Matching is RE2's, so time is linear in the text whatever the expression is, but also in the size of
the expression, for which nobody is charged: it counts as unpaid work. Memory is bounded for each
expression, and so is the number of cached ones. Of Unicode groups Go knows more names than
RE2, and ignores case, spaces, hyphens and underscores in them.
"""

from __future__ import annotations

import re
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.regex_syntax import TOO_LARGE, syntax_error, translate
from moorage.cel.lang.unpaid_work import count_unpaid
from moorage.kit.remembered import remembered

MEMORY_MAX_BYTES: Final = 8 * 2**20
SIZE_MAX: Final = MEMORY_MAX_BYTES // 64  # instructions; one beyond the memory counts as so many
REMEMBERED_MAX: Final = 128
PATTERN_LENGTH_MAX, GROUP_LENGTH_MAX = 10 * 1024, 64  # of those that are remembered
STEPS: Final = 64  # of a search that take as long as looking at an element of a list
_UNANCHORED: Final = re2._Anchor.UNANCHORED
_NOTHING: Final = (-1, -1)
_STRAY: Final = "surrogateescape"  # how strings keep bytes that are no UTF-8


class Regex:
    """A compiled expression. All searches are unanchored and prefer the leftmost match."""

    __slots__ = ("_match", "pattern", "size")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        compiled = _compiled(translate(pattern, _unicode_class))
        if compiled is None:
            # Go allows more than our memory bound does: about 3 million instructions.
            raise syntax_error(TOO_LARGE, pattern)
        self.size: int = compiled._regexp.ProgramSize()  # instructions
        # The public search() costs five times as much as the match that it is made of.
        self._match = compiled._regexp.Match

    def search(self, text: str) -> bool:
        """Return whether the expression matches somewhere in the text."""
        encoded = text.encode("utf-8", _STRAY)
        self._count(len(encoded))
        return bool(self._match(_UNANCHORED, encoded, 0, len(encoded))[0] != _NOTHING)

    def find(self, text: str) -> str | None:
        """Return the leftmost match, or None."""
        found = self.find_all(text, limit=1)
        return found[0] if found else None

    def find_all(self, text: str, *, limit: int = -1) -> list[str]:
        """Return the matches that do not overlap, at most `limit` of them if it is not negative.

        An empty match right behind the one before it does not count.
        """
        encoded = text.encode("utf-8", _STRAY)
        found: list[str] = []
        position, previous_end = 0, -1
        while position <= len(encoded) and len(found) != limit:
            self._count(len(encoded) - position)
            start, end = self._match(_UNANCHORED, encoded, position, len(encoded))[0]
            if start < 0:
                break
            if end > start or start != previous_end:
                found.append(encoded[start:end].decode("utf-8", _STRAY))
            position = end if end > position else _next_character(encoded, position)
            previous_end = end
        return found

    def _count(self, characters: int) -> None:
        """Count a search, which may look at every character with every instruction."""
        count_unpaid(characters * self.size // STEPS)


def compile_regex(pattern: str) -> Regex:
    """Return the compiled expression, or raise EvalError with the message of Go's parser.

    It is unpaid work, remembered or not: an evaluation must not depend on what was before it.
    """
    count_unpaid(0)  # not one more, if it has been too many
    found = _remembered(pattern)
    if isinstance(found, Regex):
        count_unpaid(found.size)
        return found
    count_unpaid(SIZE_MAX if TOO_LARGE in found else 1)
    raise EvalError(found)


@remembered(REMEMBERED_MAX, PATTERN_LENGTH_MAX)
def _remembered(pattern: str) -> Regex | str:
    """Return the compiled expression, or the error."""
    try:
        return Regex(pattern)
    except EvalError as error:
        return str(error)


def _next_character(encoded: bytes, position: int) -> int:
    """Return where the UTF-8 character behind the one at a position begins."""
    position += 1
    while position < len(encoded) and encoded[position] & 0xC0 == 0x80:
        position += 1
    return position


def _compiled(expression: str) -> Any:
    options = re2.Options()
    options.max_mem = MEMORY_MAX_BYTES
    options.log_errors = False
    try:
        return re2.compile(expression.encode("utf-8"), options)
    except re2.error:
        return None


# --- Unicode groups -------------------------------------------------------------------------------


@remembered(REMEMBERED_MAX, GROUP_LENGTH_MAX)
def _is_known_group(name: str) -> bool:
    return _compiled(f"\\p{{{name}}}") is not None


_VISIBLE: Final = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}"
_ASSIGNED: Final = _VISIBLE + r"\p{Cc}\p{Cf}\p{Co}\p{Cs}"
# What RE2 has no name for: the body of a class, and whether the group is everything else.
_UNIONS: Final = {
    "ascii": (r"\x{0}-\x{7f}", False),
    "assigned": (_ASSIGNED, False),
    "c": (_VISIBLE, True),  # with what is unassigned, unlike RE2's
    "cn": (_ASSIGNED, True),
    "lc": (r"\p{Lu}\p{Ll}\p{Lt}", False),
}
_ALIASES: Final = {
    "casedletter": "lc",
    "closepunctuation": "Pe",
    "cntrl": "Cc",
    "combiningmark": "M",
    "connectorpunctuation": "Pc",
    "control": "Cc",
    "currencysymbol": "Sc",
    "dashpunctuation": "Pd",
    "decimalnumber": "Nd",
    "digit": "Nd",
    "enclosingmark": "Me",
    "finalpunctuation": "Pf",
    "format": "Cf",
    "initialpunctuation": "Pi",
    "letter": "L",
    "letternumber": "Nl",
    "lineseparator": "Zl",
    "lowercaseletter": "Ll",
    "mark": "M",
    "mathsymbol": "Sm",
    "modifierletter": "Lm",
    "modifiersymbol": "Sk",
    "nonspacingmark": "Mn",
    "number": "N",
    "openpunctuation": "Ps",
    "other": "c",
    "otherletter": "Lo",
    "othernumber": "No",
    "otherpunctuation": "Po",
    "othersymbol": "So",
    "paragraphseparator": "Zp",
    "privateuse": "Co",
    "punct": "P",
    "punctuation": "P",
    "separator": "Z",
    "spaceseparator": "Zs",
    "spacingmark": "Mc",
    "surrogate": "Cs",
    "symbol": "S",
    "titlecaseletter": "Lt",
    "unassigned": "cn",
    "uppercaseletter": "Lu",
}


def _unicode_class(name: str) -> tuple[str, bool] | None:
    """Return the body of the class of a Unicode group, and whether it is negated."""
    words = re.split("[ _-]+", name.strip(" _-"))
    key = "".join(words).lower()
    alias = _ALIASES.get(key, key)
    if alias in _UNIONS:
        return _UNIONS[alias]
    known_as = alias if alias != key else "_".join(word.capitalize() for word in words)
    if not (
        known_as.isascii() and known_as.replace("_", "").isalnum() and _is_known_group(known_as)
    ):
        return None
    return f"\\p{{{known_as}}}", False
