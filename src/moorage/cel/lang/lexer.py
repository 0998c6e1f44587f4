"""Text to tokens, the values of literals, and the stream of tokens that error recovery reads.

The longest token wins; of two equally long ones the keyword. Text that begins no token is an error,
and reading goes on behind the first character that could not belong to one:

    a = 1      `=` may begin `==`, the blank rules that out: error '= ', next token `1`

Blanks and comments separate tokens and are left out. The lexer checks the form of literals, so
their parsers only refuse values that do not exist: numbers that do not fit, invalid code points,
`\\u` in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from math import isinf
from typing import Final, NamedTuple, NoReturn

from moorage.cel.lang.errors import NOWHERE, UNKNOWN, Issue, LiteralError
from moorage.cel.lang.values import INT_MAX, INT_MIN, UINT_MAX, UInt


class TokenKind(IntEnum):
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
    "==": TokenKind.EQUAL,
    "!=": TokenKind.NOT_EQUAL,
    "<": TokenKind.LESS,
    "<=": TokenKind.LESS_EQUAL,
    ">=": TokenKind.GREATER_EQUAL,
    ">": TokenKind.GREATER,
    "&&": TokenKind.AND,
    "||": TokenKind.OR,
    "[": TokenKind.LEFT_BRACKET,
    "]": TokenKind.RIGHT_BRACKET,
    "{": TokenKind.LEFT_BRACE,
    "}": TokenKind.RIGHT_BRACE,
    "(": TokenKind.LEFT_PARENTHESIS,
    ")": TokenKind.RIGHT_PARENTHESIS,
    ".": TokenKind.DOT,
    ",": TokenKind.COMMA,
    "-": TokenKind.MINUS,
    "!": TokenKind.NOT,
    "?": TokenKind.QUESTION,
    ":": TokenKind.COLON,
    "+": TokenKind.PLUS,
    "*": TokenKind.STAR,
    "/": TokenKind.SLASH,
    "%": TokenKind.PERCENT,
}
KEYWORDS: Final = {
    "in": TokenKind.IN,
    "true": TokenKind.TRUE,
    "false": TokenKind.FALSE,
    "null": TokenKind.NULL,
}
# How messages name the kinds.
NAMES: Final = {
    TokenKind.EOF: "<EOF>",
    TokenKind.FLOAT: "NUM_FLOAT",
    TokenKind.INT: "NUM_INT",
    TokenKind.UINT: "NUM_UINT",
    TokenKind.STRING: "STRING",
    TokenKind.BYTES: "BYTES",
    TokenKind.IDENTIFIER: "IDENTIFIER",
    TokenKind.ESCAPED_IDENTIFIER: "ESC_IDENTIFIER",
} | {kind: f"'{text}'" for text, kind in (SIGNS | KEYWORDS).items()}


class Token(NamedTuple):
    """A token as written, and the offset of its first character."""

    kind: TokenKind
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Garbage:
    """Text that belongs to no token, in front of the token with the number."""

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
_KINDS: Final = {"word": TokenKind.IDENTIFIER} | {
    name: TokenKind[name] for name in _TOKEN.groupindex if name.isupper()
}
# A prefix of a token, for text in which no token begins.
_PREFIX = re.compile(
    rf'(?:"(?:[^\\"\n\r]|{_ESCAPE})*|\'(?:[^\\\'\n\r]|{_ESCAPE})*)'
    r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
    r"|`[A-Za-z0-9_.\-/ ]*"
    r"|[=&|]"
    r"|"
)


def tokenize(text: str) -> tuple[list[Token], list[Garbage]]:
    """Return the tokens of a text, EOF last, and the text between them that is none."""
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
    tokens.append(Token(TokenKind.EOF, "<EOF>", end or UNKNOWN))
    return tokens, garbage


def _end_of_garbage(text: str, position: int) -> int:
    """Return the offset behind the first character that can belong to no token."""
    prefix = _PREFIX.match(text, position)
    assert prefix is not None
    return min(prefix.end() + 1, len(text))


# --- literals -------------------------------------------------------------------------------------


# More digits fit no number of 64 bits; Python would take long, or refuse, to read them.
_DIGITS_MAX: Final = 20
_ESCAPED = re.compile(r"\\(?:[xX](..)|u(....)|U(........)|([0-3]..)|(.))", re.DOTALL)
_SIMPLE: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def parse_int(text: str) -> int:
    """Return the number of `123`, `-123`, `0xff`, `-0xff`."""
    value = _whole(text.removeprefix("-"))
    if value is not None and text.startswith("-"):
        value = -value
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def parse_uint(text: str) -> UInt:
    """Return the number of `123u`, `0xffu`."""
    value = _whole(text[:-1])
    if value is None or value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(value)


def parse_double(text: str) -> float:
    """Return the number of `1.5`, `-.5`, `1e3`; a number that is too small is 0."""
    value = float(text)
    if isinf(value):
        raise LiteralError("invalid double literal")
    return value


def parse_string(text: str) -> str:
    """Return the text of a string literal in any of its forms."""
    is_raw, body = _unquote(text)
    if is_raw or "\\" not in body:
        return body
    return _ESCAPED.sub(_character, body)


def parse_bytes(text: str) -> bytes:
    """Return the bytes of `b"..."`; `\\x` and octal escapes are bytes, all else is UTF-8."""
    is_raw, body = _unquote(text[1:])
    if is_raw or "\\" not in body:
        return body.encode(errors="surrogatepass")
    out, position = bytearray(), 0
    for match in _ESCAPED.finditer(body):
        out += body[position : match.start()].encode(errors="surrogatepass")
        out += _byte(match)
        position = match.end()
    return bytes(out + body[position:].encode(errors="surrogatepass"))


def _whole(text: str) -> int | None:
    """Return a number without sign, or None if it has too many digits."""
    is_hex = text.startswith("0x")
    digits = (text[2:] if is_hex else text).lstrip("0")
    if len(digits) > _DIGITS_MAX:
        return None
    return int(digits or "0", 16 if is_hex else 10)


def _unquote(text: str) -> tuple[bool, str]:
    """Return whether a literal is raw, and what is between its quotes; lines end with \\n."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text.startswith(("'''", '"""')) else 1
    return is_raw, text[width:-width]


def _character(match: re.Match[str]) -> str:
    """Return the character of an escape in a string."""
    code = _code_point(match)
    if code is None:
        return _SIMPLE.get(match[5], match[5])
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    """Return the byte of an escape in bytes."""
    if match[2] or match[3]:
        raise LiteralError("unable to unescape string")
    code = _code_point(match)
    return _SIMPLE.get(match[5], match[5]).encode() if code is None else bytes((code,))


def _code_point(match: re.Match[str]) -> int | None:
    """Return the number that an escape gives, or None for one like `\\n`."""
    if octal := match[4]:
        return int(octal, 8)
    digits = match[1] or match[2] or match[3]
    return int(digits, 16) if digits else None


# --- the stream of tokens -------------------------------------------------------------------------


REPORTS_MAX: Final = 100


class Abandoned(Exception):  # noqa: N818 - the text is at fault
    """The text is not read any further."""


class TokenStream:
    """Tokens to be read one by one; `issues` gathers the errors."""

    def __init__(self, text: str, tokens: list[Token], garbage: list[Garbage]) -> None:
        self._text = text
        self.tokens = tokens
        self._garbage = garbage
        self._garbage_reported = 0
        # The number of the token behind the next garbage to report.
        self._garbage_before = garbage[0].token_number if garbage else len(tokens)
        self.position = 0
        self.issues: list[Issue] = []

    def token(self, distance: int = 0) -> Token:
        """Return a token ahead, at the end EOF; garbage is reported when it is passed."""
        number = min(self.position + distance, len(self.tokens) - 1)
        if number >= self._garbage_before:
            self._report_garbage(number)
        return self.tokens[number]

    def skip(self) -> Token:
        """Return the current token and go to the next."""
        token = self.token()
        if token.kind is not TokenKind.EOF:
            self.position += 1
            self.token()
        return token

    def go_to(self, position: int) -> None:
        """Go on at a token further ahead."""
        self.position = position
        self.token()

    def last(self) -> Token | None:
        """Return the token before the current one, if there is one."""
        return self.tokens[self.position - 1] if self.position else None

    def text_between(self, first: Token, last: Token) -> str:
        """Return the text from one token to another, without garbage."""
        if first.kind is TokenKind.EOF:
            return first.text
        start, stop = first.offset, last.offset + len(last.text)
        pieces = []
        for garbage in self._garbage:
            if start <= garbage.offset < stop:
                pieces.append(self._text[start : garbage.offset])
                start = garbage.offset + len(garbage.text)
        return "".join((*pieces, self._text[start:stop]))

    def report(self, offset: int, message: str) -> None:
        """Report an error; too many stop parsing."""
        is_over = len(self.issues) == REPORTS_MAX
        if is_over:
            message = f"More than {REPORTS_MAX} syntax errors"
        self.issues.append(Issue(offset, f"Syntax error: {message}"))
        if is_over:
            raise Abandoned

    def abandon(self, message: str) -> NoReturn:
        """Report an error of the whole text, and stop parsing."""
        self.issues.append(Issue(NOWHERE, message))
        raise Abandoned

    def _report_garbage(self, number: int) -> None:
        """Report all garbage before the token with the number."""
        while self._garbage_before <= number:
            garbage = self._garbage[self._garbage_reported]
            self._garbage_reported += 1
            is_last = self._garbage_reported == len(self._garbage)
            self._garbage_before = (
                len(self.tokens) if is_last else self._garbage[self._garbage_reported].token_number
            )
            self.report(garbage.offset, f"token recognition error at: '{garbage.text}'")
