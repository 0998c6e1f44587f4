"""Label and field selectors of lists and watches, with Kubernetes' messages for invalid ones.

selector        = [ requirement *( "," requirement ) ]
requirement     = key | "!" key | key ("=" | "==" | "!=" | ">" | "<") [ value ]
                | key ("in" | "notin") "(" [ value ] *( "," [ value ] ) ")"
field selector  = [ term ] *( "," [ term ] )
term            = label ("=" | "==" | "!=") value       # with \\, \\= and \\\\ for the characters

# label: the name that a field selector uses for a field; some are deprecated names
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from moorage.api import names
from moorage.api.core.placement import NodeSelectorRequirement
from moorage.api.kinds import Kind
from moorage.api.labels import EVERYTHING, Selector, joined, requirement_faults
from moorage.apiserver.errors import LabelSelectorError
from moorage.apiserver.http.status import StatusError, bad_request
from moorage.apiserver.resources import Resource
from moorage.apiserver.verbs.field_labels import field_of, fields_of, unknown_label

# --- label selectors ------------------------------------------------------------------------------

_TOKEN = re.compile(r"[ \t\r\n]*(?P<token>[^ \t\r\n,()=!<>]+|==|!=|[=!(),<>])")
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_WORDS = {"in": "In", "notin": "NotIn"}
_BINARY = "in, notin, =, ==, !=, gt, lt"
_END = ""


def read_labels(text: str) -> Selector:
    """Return the selector of a text, or raise LabelSelectorError."""
    return EVERYTHING.and_requirements(_Reader(text.partition("\0")[0]).selector())


class _Reader:
    """Parses one text, token by token."""

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
        """Return the values in parentheses; a missing one is empty."""
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


# --- selections -----------------------------------------------------------------------------------

_TERM = re.compile(r"((?:[^\\,]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)
_SPLIT = re.compile(r"(?P<label>.*?)(?P<sign>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = "\\,="


class FieldTerm(NamedTuple):
    """A field that must or must not have a value."""

    field: str
    value: str
    is_wanted: bool


class Selection(NamedTuple):
    """The selection of a list or watch."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether everything is selected."""
        return self.labels.is_empty and not self.fields

    @property
    def name(self) -> str | None:
        """The name of the only selected object, if there is one."""
        for term in self.fields:
            if term.field == "metadata.name" and term.is_wanted:
                return term.value
        return None

    def means(self, value: Any, resource: Resource) -> bool:
        """Return whether an object is selected."""
        if not self.labels.matches(value.metadata.labels):
            return False
        if not self.fields:
            return True
        fields = fields_of(value, namespaced=resource.namespaced)
        return all((fields.get(t.field, "") == t.value) == t.is_wanted for t in self.fields)


def read_selection(label_text: str, field_text: str, resource: Resource, version: str) -> Selection:
    """Return the selection of two selectors, or raise 400."""
    try:
        labels = read_labels(label_text)
    except LabelSelectorError as fault:
        raise bad_request(str(fault)) from None
    kind = resource.kinds[version]
    terms = tuple(_supported(term, kind) for term in _read_terms(field_text))
    return Selection(labels, terms)


# --- fields ---------------------------------------------------------------------------------------


def required_fields(text: str) -> dict[str, str]:
    """Return the values that a selector requires of fields; {} if it is invalid.

    Authorizers need them before the resource is known.
    """
    try:
        terms = _read_terms(text)
    except StatusError:
        return {}
    return {term.field: term.value for term in terms if term.is_wanted}


def _read_terms(text: str) -> list[FieldTerm]:
    found = []
    for term in sorted(_TERM.findall(text)):
        if not term:
            continue
        split = _SPLIT.match(term)
        if split is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        is_wanted = split["sign"] != "!="
        found.append(FieldTerm(split["label"], _unescaped(split["value"]), is_wanted))
    return found


def _supported(term: FieldTerm, kind: Kind) -> FieldTerm:
    field = field_of(kind, term.field)
    if field is None:
        raise bad_request(unknown_label(kind, term.field))
    return term._replace(field=field)


def _unescaped(text: str) -> str:
    """Return a value without its escapes."""
    found, place = "", 0
    while place < len(text):
        character = text[place]
        if character == "\\":
            place += 1
            escaped = text[place : place + 1]
            if escaped not in _ESCAPED or not escaped:
                why = f"invalid escape sequence: \\{escaped}"
                raise bad_request(f"invalid field selector: {why}")
            character = escaped
        elif character in ",=":
            why = f"unescaped character in value: {ord(character)}"
            raise bad_request(f"invalid field selector: {why}")
        found += character
        place += 1
    return found
