"""Regular expressions in Go's syntax, rewritten for the RE2 library.

Both languages are almost the same. This reader accepts what Go accepts, refuses the rest with Go's
messages, and writes an expression with the same meaning for RE2: literals and escapes one by one,
groups without their names and numbers, because captures are not used.

    # atom: what a repetition applies to: a character, a class, a group, an assertion
    # copies: how often the innermost atom is repeated by all {n,m} around it; Go allows 1000
    # height: how deeply the tree of the expression is nested; Go allows 1000

The expression is read from left to right, open groups are on a stack, nothing is recursive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from moorage.cel.lang.errors import EvalError

# The body of the class of a Unicode group, and whether it is negated; None: no such group.
UnicodeClass = Callable[[str], tuple[str, bool] | None]
COPIES_MAX: Final = 1000
HEIGHT_MAX: Final = 1000
RUNE_MAX: Final = 0x10FFFF
BAD_ESCAPE: Final = "invalid escape sequence"
BAD_NAME: Final = "invalid named capture"
BAD_PERL: Final = "invalid or unsupported Perl syntax"
BAD_RANGE: Final = "invalid character class range"
BAD_REPEAT: Final = "invalid repeat count"
NESTED_REPEAT: Final = "invalid nested repetition operator"
NOTHING_TO_REPEAT: Final = "missing argument to repetition operator"
TOO_DEEP: Final = "expression nests too deeply"
TOO_LARGE: Final = "expression too large"
TRAILING_BACKSLASH: Final = "trailing backslash at end of expression"
UNCLOSED_CLASS: Final = "missing closing ]"
UNCLOSED_GROUP: Final = "missing closing )"
UNOPENED_GROUP: Final = "unexpected )"
_CONTROL: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_PERL_CLASSES: Final = frozenset("dDsSwW")
_ASSERTIONS: Final = frozenset("AbBz")
_match_repeat = re.compile(r"\{(0|[1-9][0-9]*+)(?:(,)(0|[1-9][0-9]*+)?+)?+\}").match
_match_flags = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])").match
_match_flag_characters = re.compile(r"\(\?[imsU]*(?:-[imsU]*)?").match
# One octal digit alone, other than 0, would be a reference to a group.
_match_octal = re.compile("0[0-7]{0,2}|[1-7][0-7]{1,2}").match
_is_capture_name = re.compile("[A-Za-z0-9_]+").fullmatch
_is_posix_class = re.compile(
    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
).fullmatch
_is_plain = re.compile("[A-Za-z0-9 _-]").match


def translate(text: str, unicode_class: UnicodeClass) -> str:
    """Return the expression for RE2, or raise EvalError with Go's message."""
    return _Reader(text, unicode_class).read()


def syntax_error(code: str, expression: str) -> EvalError:
    """Return the error that Go has for a part of an expression."""
    return EvalError(f"error parsing regexp: {code}: `{expression}`")


class _Group:
    """The state of an open group, or of the whole: its branches so far."""

    def __init__(self, *, captures: bool) -> None:
        self.captures = captures
        self.branches = 0  # that ended
        self.copies = 1  # the most of any atom within
        self.height = 0  # the tallest of the branches that ended
        self.tallest = 0  # the tallest atom of this branch, without the last
        self.atoms = 0  # of this branch
        self.last_copies = 1
        self.last_height = 0

    def add(self, copies: int = 1, height: int = 1) -> None:
        self._settle_last()
        self.atoms += 1
        self.last_copies = copies
        self.last_height = height

    def end_branch(self) -> None:
        self._settle_last()
        self.height = max(self.height, self.tallest + (self.atoms > 1), 1)
        self.branches += 1
        self.tallest = self.atoms = self.last_height = 0

    def end(self) -> int:
        """End the group; return its height."""
        self.end_branch()
        # A sequence, and a choice, are nodes of the tree if they have more than one part.
        return self.height + (self.branches > 1) + self.captures

    def _settle_last(self) -> None:
        self.copies = max(self.copies, self.last_copies)
        self.tallest = max(self.tallest, self.last_height)


class _Reader:
    def __init__(self, text: str, unicode_class: UnicodeClass) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._open = [_Group(captures=False)]
        self._repeated_from: int | None = None  # where the repetition right before us began
        self._unicode_class = unicode_class

    def read(self) -> str:
        text = self._text
        while self._at < len(text):
            start, repeated_from = self._at, self._repeated_from
            self._repeated_from = None
            character = text[start]
            if character in "*+?{" and self._repetition(repeated_from):
                self._repeated_from = start
            elif character == "(":
                self._begin_group()
            elif character == "|":
                self._open[-1].end_branch()
                self._write(self._taken(1))
            elif character == ")":
                self._end_group()
            elif character == "[":
                self._atom(self._class())
            elif character == "\\":
                self._escaped()
            elif character in "^$.":
                self._atom(self._taken(1))
            else:
                self._atom(_literal(ord(self._taken(1))))
        if len(self._open) > 1:
            raise syntax_error(UNCLOSED_GROUP, text)
        return "".join(self._out)

    # --- moving and writing -----------------------------------------------------------------------

    def _taken(self, count: int) -> str:
        """Return the next characters and step over them."""
        start, self._at = self._at, self._at + count
        return self._text[start : self._at]

    def _follows(self, prefix: str) -> bool:
        return self._text.startswith(prefix, self._at)

    def _write(self, piece: str) -> None:
        self._out.append(piece)

    def _atom(self, piece: str) -> None:
        self._open[-1].add()
        self._write(piece)

    # --- repetitions ------------------------------------------------------------------------------

    def _repetition(self, repeated_from: int | None) -> bool:
        """( "*" | "+" | "?" | "{" min [ "," [ max ] ] "}" ) [ "?" ]; else `{` is a character"""
        text, start = self._text, self._at
        copies, end = 1, start + 1
        if text[start] == "{":
            found = _match_repeat(text, start)
            if found is None:
                return False
            copies, end = _copies(found), found.end()
        if text.startswith("?", end):
            end += 1
        if repeated_from is not None:
            raise syntax_error(NESTED_REPEAT, text[repeated_from:end])
        group = self._open[-1]
        if not group.atoms:
            raise syntax_error(NOTHING_TO_REPEAT, text[start:end])
        group.last_height += 1
        self._check_height(group.last_height)
        group.last_copies = group.last_copies * copies if copies else 1
        if group.last_copies > COPIES_MAX:
            raise syntax_error(BAD_REPEAT, text[start:end])
        self._write(self._taken(end - start))
        return True

    def _check_height(self, height: int) -> None:
        if height > HEIGHT_MAX:
            raise syntax_error(TOO_DEEP, self._text)

    # --- groups -----------------------------------------------------------------------------------

    def _begin_group(self) -> None:
        """ "(" | "(?:" | "(?flags:" | "(?flags)" | "(?P<name>" | "(?<name>" """
        if not self._follows("(?"):
            self._at += 1
            self._push("(?:", captures=True)
        elif (prefix := self._name_prefix()) is not None:
            self._named_group(prefix)
        else:
            self._flags()

    def _push(self, piece: str, *, captures: bool) -> None:
        self._write(piece)
        self._open.append(_Group(captures=captures))

    def _name_prefix(self) -> str | None:
        for prefix in ("(?P<", "(?<"):
            if self._follows(prefix) and len(self._text) - self._at > len(prefix):
                return prefix
        return None

    def _named_group(self, prefix: str) -> None:
        end = self._text.find(">", self._at)
        if end < 0:
            raise syntax_error(BAD_NAME, self._text[self._at :])
        whole = self._taken(end + 1 - self._at)
        if not _is_capture_name(whole[len(prefix) : -1]):
            raise syntax_error(BAD_NAME, whole)
        self._push("(?:", captures=True)

    def _flags(self) -> None:
        found = _match_flags(self._text, self._at)
        if found is None:
            read = _match_flag_characters(self._text, self._at)
            assert read is not None
            raise syntax_error(BAD_PERL, self._text[self._at : read.end() + 1])
        self._at = found.end()
        if found[3] == ":":
            self._push(found[0], captures=False)
        elif found[0] != "(?)":
            self._write(found[0])

    def _end_group(self) -> None:
        if len(self._open) == 1:
            raise syntax_error(UNOPENED_GROUP, self._text)
        group = self._open.pop()
        height = group.end()
        self._check_height(height)
        self._open[-1].add(group.copies, height)
        self._write(self._taken(1))

    # --- escapes ----------------------------------------------------------------------------------

    def _escaped(self) -> None:
        kind = self._text[self._at + 1 : self._at + 2]
        if kind == "C":
            raise syntax_error(BAD_ESCAPE, "\\C")
        if kind == "Q":
            self._quoted()
        elif kind in _ASSERTIONS or kind in _PERL_CLASSES:
            self._atom(self._taken(2))
        elif kind in ("p", "P"):
            body, is_negated = self._unicode_group()
            self._atom(f"[{'^' * is_negated}{body}]")
        else:
            self._atom(_literal(self._character_escape()))

    def _quoted(self) -> None:
        r""" "\Q" any "\E" | "\Q" any end"""
        end = self._text.find("\\E", self._at + 2)
        stop = len(self._text) if end < 0 else end
        for character in self._text[self._at + 2 : stop]:
            self._atom(_literal(ord(character)))
        self._at = stop if end < 0 else stop + 2

    def _character_escape(self) -> int:
        """Return the code of `\\n`, `\\x41`, `\\x{1F600}`, `\\012` or `\\.`."""
        start = self._at
        self._at += 1
        if octal := _match_octal(self._text, self._at):
            return int(self._taken(len(octal[0])), 8)
        character = self._taken(1)
        if not character:
            raise syntax_error(TRAILING_BACKSLASH, "")
        code: int | None = None
        if character == "x":
            code = self._braced_hexadecimal() if self._follows("{") else self._hexadecimal()
        elif character in _CONTROL:
            code = _CONTROL[character]
        elif character.isascii() and not character.isalnum():
            code = ord(character)
        if code is None:
            raise syntax_error(BAD_ESCAPE, self._text[start : self._at])
        return code

    def _hexadecimal(self) -> int | None:
        return _hexadecimal_value(self._taken(2), 2)

    def _braced_hexadecimal(self) -> int | None:
        self._at += 1
        code = 0
        start = self._at
        while (character := self._taken(1)) != "}":
            digit = _hexadecimal_value(character, 1)
            if digit is None:
                return None
            code = code * 16 + digit
            if code > RUNE_MAX:
                return None
        return code if self._at > start + 1 else None

    # --- classes ----------------------------------------------------------------------------------

    def _class(self) -> str:
        r""" "[" [ "^" ] 1*( "[:name:]" | "\p{name}" | "\d" | character [ "-" character ] ) "]" """
        start = self._at
        self._at += 1
        out = ["["]
        if self._follows("^"):
            out.append(self._taken(1))
        is_first = True
        while is_first or not self._follows("]"):
            is_first = False
            out.append(self._class_part(start))
        out.append(self._taken(1))
        return "".join(out)

    def _class_part(self, class_start: int) -> str:
        if self._follows("[:") and (end := self._text.find(":]", self._at + 2)) >= 0:
            name = self._taken(end + 2 - self._at)
            if not _is_posix_class(name):
                raise syntax_error(BAD_RANGE, name)
            return name
        if self._follows("\\p") or self._follows("\\P"):
            return self._unicode_part()
        if self._follows("\\") and self._text[self._at + 1 : self._at + 2] in _PERL_CLASSES:
            return self._taken(2)
        return self._class_range(class_start)

    def _class_range(self, class_start: int) -> str:
        start = self._at
        low = high = self._class_character(class_start)
        if self._follows("-") and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            high = self._class_character(class_start)
            if high < low:
                raise syntax_error(BAD_RANGE, self._text[start : self._at])
        return f"\\x{{{low:x}}}-\\x{{{high:x}}}"

    def _class_character(self, class_start: int) -> int:
        if self._at >= len(self._text):
            raise syntax_error(UNCLOSED_CLASS, self._text[class_start:])
        if self._follows("\\"):
            return self._character_escape()
        return ord(self._taken(1))

    # --- groups of Unicode ------------------------------------------------------------------------

    def _unicode_group(self) -> tuple[str, bool]:
        """Return the body of the class that `\\p{name}` is, and whether it is negated."""
        start = self._at
        is_negated = self._taken(2) == "\\P"
        name = self._taken(1)
        if name == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise syntax_error(BAD_RANGE, self._text[start:])
            name = self._taken(end - self._at)
            self._at += 1
        is_negated ^= name.startswith("^")
        group = self._unicode_class(name.removeprefix("^"))
        if group is None:
            raise syntax_error(BAD_RANGE, self._text[start : self._at])
        body, is_complement = group
        return body, is_negated ^ is_complement

    def _unicode_part(self) -> str:
        start = self._at
        body, is_negated = self._unicode_group()
        if not is_negated:
            return body
        if body.count("\\p") == 1:
            return body.replace("\\p", "\\P")
        # A negated union cannot be a part of a class; nobody has asked for one yet.
        raise syntax_error(BAD_RANGE, self._text[start : self._at])


def _literal(code: int) -> str:
    """Return a character such that it has no meaning but itself."""
    character = chr(code)
    return character if _is_plain(character) else f"\\x{{{code:x}}}"


def _hexadecimal_value(digits: str, count: int) -> int | None:
    is_number = len(digits) == count and all(digit in "0123456789abcdefABCDEF" for digit in digits)
    return int(digits, 16) if is_number else None


def _copies(found: re.Match[str]) -> int:
    """Return how many copies `{min,max}` makes at most, 0 for none at all."""
    low = int(found[1][:9])
    high = low if found[2] is None else (None if found[3] is None else int(found[3][:9]))
    if low > COPIES_MAX or (high is not None and (high > COPIES_MAX or low > high)):
        raise syntax_error(BAD_REPEAT, found[0])
    return max(low, 1) if high is None else high
