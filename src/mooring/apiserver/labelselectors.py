"""Label selectors of lists and watches, read from their texts, with Kubernetes' words for faults.

selector     = [ requirement *( "," requirement ) ]
requirement  = key | "!" key | key ("=" | "==" | "!=" | ">" | "<") [ value ]
             | key ("in" | "notin") "(" [ value ] *( "," [ value ] ) ")"
"""

from __future__ import annotations

import re

from mooring.api import names
from mooring.api.labels import EVERYTHING, Selector, joined, requirement_faults
from mooring.api.nodeselector import NodeSelectorRequirement

_TOKEN = re.compile(r"[ \t\r\n]*(?P<token>[^ \t\r\n,()=!<>]+|==|!=|[=!(),<>])")
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_WORDS = {"in": "In", "notin": "NotIn"}
_BINARY = "in, notin, =, ==, !=, gt, lt"
_END = ""


class LabelSelectorError(Exception):
    """A text that is no label selector."""


def read_labels(text: str) -> Selector:
    """Return the selector of a text, or raise why it is none."""
    return EVERYTHING.and_requirements(_Reader(text.partition("\0")[0]).selector())


class _Reader:
    """Reads one text, token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = [found["token"] for found in _TOKEN.finditer(text)]
        self._next = 0

    def selector(self) -> list[NodeSelectorRequirement]:
        """Return all requirements; none of an empty text."""
        found: list[NodeSelectorRequirement] = []
        if self._peek() == _END:
            return found
        if not self._is_begun():
            raise _unexpected(self._peek(), "!, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except LabelSelectorError as fault:
                raise LabelSelectorError(f"unable to parse requirement: {fault}") from None
            after = self._take()
            if after == _END:
                return found
            if after != ",":
                raise _unexpected(after, "',' or 'end of string'")
            if not self._is_begun():
                raise _unexpected(self._peek(), "identifier after ','")

    def _requirement(self) -> NodeSelectorRequirement:
        is_absent = self._peek() == "!"
        if is_absent:
            self._take()
        key = self._key()
        values: tuple[str, ...] = ()
        if is_absent:
            operator = "DoesNotExist"
        elif self._peek() in (_END, ","):
            operator = "Exists"
        else:
            sign = self._take()
            operator = _SIGNS.get(sign) or _WORDS.get(sign, "")
            if not operator:
                raise _unexpected(sign, _BINARY)
            values = self._values() if sign in _WORDS else (self._value(),)
        wanted = NodeSelectorRequirement(key=key, operator=operator, values=values)
        if faults := requirement_faults(wanted, ""):
            raise LabelSelectorError(joined(faults))
        return wanted

    def _key(self) -> str:
        token = self._take()
        if not _is_word(token):
            raise _unexpected(token, "identifier")
        if reasons := "; ".join(names.label_name(token)):
            raise LabelSelectorError(f'<nil>: Invalid value: "{token}": {reasons}')
        return token

    def _value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        token = self._take()
        if not _is_word(token):
            raise _unexpected(token, "identifier")
        return token

    def _values(self) -> tuple[str, ...]:
        """Return the values in parentheses; one that is left out is the empty one."""
        opening = self._take()
        if opening != "(":
            raise LabelSelectorError(f"found '{opening}' expected: '('")
        if self._peek() == ")":
            self._take()
            return ("",)
        if self._peek() != "," and not _is_word(self._peek()):
            raise _unexpected(self._peek(), "',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._take() if _is_word(self._peek()) else "")
            match self._take():
                case ")":
                    return tuple(sorted(values))
                case ",":
                    if self._peek() != "," and self._peek() != ")" and not _is_word(self._peek()):
                        raise _unexpected(self._peek(), "',', or identifier")
                case token:
                    raise _unexpected(token, "',' or ')'")

    def _is_begun(self) -> bool:
        return self._peek() == "!" or _is_word(self._peek())

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


def _unexpected(token: str, expected: str) -> LabelSelectorError:
    return LabelSelectorError(f"found '{token}', expected: {expected}")
