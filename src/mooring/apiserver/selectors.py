"""Label and field selectors of lists and watches, read from their texts.

label selector  = requirement *( "," requirement )
requirement     = key | "!" key | key ("=" | "==" | "!=") value
                | key ("in" | "notin") "(" value *( "," value ) ")" | key (">" | "<") integer
field selector  = term *( "," term )
term            = field ("=" | "==" | "!=") value       # with \\, \\= and \\\\ for the characters
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mooring.api.labels import EVERYTHING, Selector
from mooring.api.nodeselector import NodeSelectorRequirement
from mooring.apiserver.resources import Resource
from mooring.apiserver.status import StatusError, bad_request

_WORD = r"[^\s,()=!<>]+"
_TOKEN = re.compile(rf"\s*(?:(?P<word>{_WORD})|(?P<sign>==|!=|=|!|\(|\)|,|<|>))")
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}


class FieldTerm(NamedTuple):
    """A field that must, or must not, have a value."""

    field: str
    value: str
    is_wanted: bool


class Selection(NamedTuple):
    """What a list or a watch is about."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self.labels.is_empty and not self.fields

    @property
    def name(self) -> str | None:
        """The only name that is meant, if one is."""
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
        fields = resource.fields_of(value)
        return all((fields.get(t.field, "") == t.value) == t.is_wanted for t in self.fields)


def read_selection(label_text: str, field_text: str, resource: Resource, version: str) -> Selection:
    """Return what the texts select, or raise the Status that Kubernetes answers with."""
    labels = _read_labels(label_text) if label_text.strip() else EVERYTHING
    return Selection(labels, _read_fields(field_text, resource, version))


# --- labels ---------------------------------------------------------------------------------------


def _read_labels(text: str) -> Selector:
    requirements = _Labels(text).requirements()
    return EVERYTHING.and_requirements(requirements)


class _Labels:
    """Reads one label selector."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._fault(f"found '{text[place:].strip()[:32]}', expected: identifier")
            self._tokens.append(found["word"] or found["sign"])
            place = found.end()
        self._next = 0

    def requirements(self) -> tuple[NodeSelectorRequirement, ...]:
        """Return all requirements."""
        found = [self._requirement()]
        while self._peek() == ",":
            self._take()
            found.append(self._requirement())
        if self._peek():
            raise self._fault(f"found '{self._peek()}', expected: ',' or 'end of string'")
        return tuple(found)

    def _requirement(self) -> NodeSelectorRequirement:
        if self._peek() == "!":
            self._take()
            return NodeSelectorRequirement(key=self._word(), operator="DoesNotExist")
        key = self._word()
        sign = self._peek()
        if sign in ("", ","):
            return NodeSelectorRequirement(key=key, operator="Exists")
        self._take()
        if sign in _SIGNS:
            value = "" if self._peek() in ("", ",") else self._word()
            return NodeSelectorRequirement(key=key, operator=_SIGNS[sign], values=(value,))
        if sign in ("in", "notin"):
            operator = "In" if sign == "in" else "NotIn"
            return NodeSelectorRequirement(key=key, operator=operator, values=self._values())
        raise self._fault(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")

    def _values(self) -> tuple[str, ...]:
        if self._peek() != "(":
            raise self._fault(f"found '{self._peek()}', expected: '('")
        self._take()
        if not re.fullmatch(_WORD, self._peek() or " "):
            raise self._fault(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values = [self._word()]
        while self._peek() == ",":
            self._take()
            values.append(self._word())
        if self._peek() != ")":
            raise self._fault(f"found '{self._peek()}', expected: ',', or ')'")
        self._take()
        return tuple(sorted(set(values)))

    def _word(self) -> str:
        token = self._peek()
        if not token or not re.fullmatch(_WORD, token):
            raise self._fault(f"found '{token}', expected: identifier")
        return self._take()

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _fault(self, why: str) -> StatusError:
        return bad_request(f"unable to parse requirement: {why}")


# --- fields ---------------------------------------------------------------------------------------


def wanted_fields(text: str) -> dict[str, str]:
    """Return the fields that a selector wants to have a value; what cannot be read wants nothing.

    Whoever decides what a user may looks at it before the resource is known.
    """
    found: dict[str, str] = {}
    for term in _split(text, ","):
        if len(_split(term, "!=")) > 1:
            continue
        for sign in ("==", "="):
            parts = _split(term, sign)
            if len(parts) == 2:
                found[parts[0]] = _unescaped(parts[1])
                break
    return found


def _read_fields(text: str, resource: Resource, version: str) -> tuple[FieldTerm, ...]:
    return tuple(_read_term(term, resource, version) for term in _split(text, ",") if term)


def _read_term(term: str, resource: Resource, version: str) -> FieldTerm:
    for sign, is_wanted in (("!=", False), ("==", True), ("=", True)):
        parts = _split(term, sign)
        if len(parts) == 2:
            field, value = parts
            _check_field(field, resource, version)
            return FieldTerm(field, _unescaped(value), is_wanted)
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


def _check_field(field: str, resource: Resource, version: str) -> None:
    if field not in resource.selectable_fields:
        kind = resource.kinds[version]
        where = f"{kind.api_version}, Kind={kind.name}"
        raise bad_request(f"field label not supported for {where}: {field}")


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of a text between separators that are not escaped."""
    parts, current, place = [], "", 0
    while place < len(text):
        if text[place] == "\\" and place + 1 < len(text):
            current += text[place : place + 2]
            place += 2
        elif text.startswith(separator, place):
            parts.append(current)
            current = ""
            place += len(separator)
        else:
            current += text[place]
            place += 1
    return [*parts, current]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", text)
