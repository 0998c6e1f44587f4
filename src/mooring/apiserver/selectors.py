"""What lists and watches select: by labels (mooring.apiserver.labelselectors) and by fields.

field selector  = [ term ] *( "," [ term ] )
term            = label ("=" | "==" | "!=") value       # with \\, \\= and \\\\ for the characters
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mooring.api.kinds import Kind
from mooring.api.labels import EVERYTHING, Selector
from mooring.apiserver.labelselectors import LabelSelectorError, read_labels
from mooring.apiserver.resources import Resource
from mooring.apiserver.selectable import field_of, unknown_label
from mooring.apiserver.status import StatusError, bad_request

_TERM = re.compile(r"((?:[^\\,]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)
_SPLIT = re.compile(r"(?P<label>.*?)(?P<sign>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = "\\,="


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
    try:
        labels = read_labels(label_text)
    except LabelSelectorError as fault:
        raise bad_request(str(fault)) from None
    kind = resource.kinds[version]
    terms = tuple(_supported(term, kind) for term in _read_terms(field_text))
    return Selection(labels, terms)


# --- fields ---------------------------------------------------------------------------------------


def wanted_fields(text: str) -> dict[str, str]:
    """Return the fields that a selector wants to have a value; what cannot be read wants nothing.

    Whoever decides what a user may looks at it before the resource is known.
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
    """Return a value without the backslashes that stand before its characters."""
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
