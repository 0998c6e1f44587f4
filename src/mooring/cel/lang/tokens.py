"""Text to tokens.

The longest token wins, as everywhere; of two equally long ones the keyword. What begins no token
is an error, and reading goes on behind the first character that could not belong to one:

    a = 1      `=` may begin `==`, the blank ends that hope: error '= ', next token `1`

Blanks and comments separate tokens and are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from mooring.cel.lang.source import UNKNOWN


class Kind(IntEnum):
    """The kinds of tokens. Messages list what they expect in this order."""

    EOF = -1
    EQUAL = 1
    NOT_EQUAL = 2
    IN = 3
    LESS = 4
    LESS_EQUAL = 5
    GREATER_EQUAL = 6
    GREATER = 7
    AND = 8
    OR = 9
    LEFT_BRACKET = 10
    RIGHT_BRACKET = 11
    LEFT_BRACE = 12
    RIGHT_BRACE = 13
    LEFT_PARENTHESIS = 14
    RIGHT_PARENTHESIS = 15
    DOT = 16
    COMMA = 17
    MINUS = 18
    NOT = 19
    QUESTION = 20
    COLON = 21
    PLUS = 22
    STAR = 23
    SLASH = 24
    PERCENT = 25
    TRUE = 26
    FALSE = 27
    NULL = 28
    FLOAT = 31
    INT = 32
    UINT = 33
    STRING = 34
    BYTES = 35
    IDENTIFIER = 36
    ESCAPED_IDENTIFIER = 37


SIGNS: Final = {
    "==": Kind.EQUAL,
    "!=": Kind.NOT_EQUAL,
    "<": Kind.LESS,
    "<=": Kind.LESS_EQUAL,
    ">=": Kind.GREATER_EQUAL,
    ">": Kind.GREATER,
    "&&": Kind.AND,
    "||": Kind.OR,
    "[": Kind.LEFT_BRACKET,
    "]": Kind.RIGHT_BRACKET,
    "{": Kind.LEFT_BRACE,
    "}": Kind.RIGHT_BRACE,
    "(": Kind.LEFT_PARENTHESIS,
    ")": Kind.RIGHT_PARENTHESIS,
    ".": Kind.DOT,
    ",": Kind.COMMA,
    "-": Kind.MINUS,
    "!": Kind.NOT,
    "?": Kind.QUESTION,
    ":": Kind.COLON,
    "+": Kind.PLUS,
    "*": Kind.STAR,
    "/": Kind.SLASH,
    "%": Kind.PERCENT,
}
KEYWORDS: Final = {"in": Kind.IN, "true": Kind.TRUE, "false": Kind.FALSE, "null": Kind.NULL}

# How messages name the kinds.
NAMES: Final = {
    Kind.EOF: "<EOF>",
    Kind.FLOAT: "NUM_FLOAT",
    Kind.INT: "NUM_INT",
    Kind.UINT: "NUM_UINT",
    Kind.STRING: "STRING",
    Kind.BYTES: "BYTES",
    Kind.IDENTIFIER: "IDENTIFIER",
    Kind.ESCAPED_IDENTIFIER: "ESC_IDENTIFIER",
} | {kind: f"'{text}'" for text, kind in (SIGNS | KEYWORDS).items()}


class Token(NamedTuple):
    """A token as written, and the offset of its first character."""

    kind: Kind
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Garbage:
    """Text that belongs to no token; it was met on the way to the token with the number."""

    text: str
    offset: int
    token_number: int


_ESCAPE = (
    r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
)
_STRING = (
    rf'"""(?:[^\\]|{_ESCAPE})*?"""'
    rf"|'''(?:[^\\]|{_ESCAPE})*?'''"
    rf'|"(?:[^\\"\n\r]|{_ESCAPE})*"'
    rf"|'(?:[^\\'\n\r]|{_ESCAPE})*'"
    r'|[rR](?:"""[\s\S]*?"""|"[^"\n\r]*")'
    r"|[rR](?:'''[\s\S]*?'''|'[^'\n\r]*')"
)
_EXPONENT = r"[eE][+-]?[0-9]+"

# The alternatives are ordered so that the first that matches is the longest.
_TOKEN = re.compile(
    rf"(?P<blank>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<STRING>{_STRING})"
    rf"|(?P<BYTES>[bB](?:{_STRING}))"
    rf"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    rf"|(?P<FLOAT>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)"
    rf"|(?P<UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    rf"|(?P<INT>0x[0-9a-fA-F]+|[0-9]+)"
    rf"|(?P<ESCAPED_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
    rf"|(?P<sign>==|!=|<=|>=|&&|\|\||[][<>{{}}().,\-!?:+*/%])"
)

_FIXED: Final = SIGNS | KEYWORDS
_KINDS: Final = {"word": Kind.IDENTIFIER} | {
    name: Kind[name] for name in _TOKEN.groupindex if name.isupper()
}

# What could still become a token, for text in which none begins.
_HOPE = re.compile(
    rf'(?:"(?:[^\\"\n\r]|{_ESCAPE})*|\'(?:[^\\\'\n\r]|{_ESCAPE})*)'
    r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
    r"|`[A-Za-z0-9_.\-/ ]*"
    r"|[=&|]"
    r"|"
)


def tokenize(text: str) -> tuple[list[Token], list[Garbage]]:
    """Return the tokens of a text, EOF last, and what was no token."""
    tokens: list[Token] = []
    garbage: list[Garbage] = []
    position, end = 0, len(text)
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            stop = _end_of_garbage(text, position)
            garbage.append(Garbage(text[position:stop], position, len(tokens)))
            position = stop
            continue
        group = match.lastgroup
        assert group is not None
        if group != "blank":
            found = match.group()
            tokens.append(Token(_FIXED.get(found) or _KINDS[group], found, position))
        position = match.end()
    # As in cel-go, the end of the empty text is before its beginning.
    tokens.append(Token(Kind.EOF, "<EOF>", end or UNKNOWN))
    return tokens, garbage


def _end_of_garbage(text: str, position: int) -> int:
    """Return where to go on reading: behind the character that ended all hope."""
    hope = _HOPE.match(text, position)
    assert hope is not None
    return min(hope.end() + 1, len(text))
