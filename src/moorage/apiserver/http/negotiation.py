"""Content negotiation: the representation of a response, from the Accept header.

Accept:  clause, …
clause:  TYPE/SUBTYPE; NAME=VALUE; …       as, g and v ask for a table or metadata
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from moorage.api import protobuf
from moorage.apiserver.http.messages import JSON
from moorage.apiserver.http.status import not_acceptable
from moorage.apiserver.tables import VERSIONS

YAML = "application/yaml"
PROTOBUF = protobuf.CONTENT_TYPE

OBJECT_TYPES = (JSON, YAML, PROTOBUF)
STREAM_TYPES = (f"{JSON};stream=watch", protobuf.WATCH_CONTENT_TYPE)

_ANY = ("*/*", "application/*")
_LENGTH_MAX = 4096


class ObjectForm(Enum):
    """The form of objects in a response."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


class Representation(NamedTuple):
    """The media type and the form of a response."""

    media: str = JSON
    shape: ObjectForm = ObjectForm.OBJECT
    version: str = VERSIONS[0]  # of the table, or of the metadata

    @property
    def is_partial(self) -> bool:
        """Whether the response has metadata only."""
        return self.shape in (ObjectForm.METADATA, ObjectForm.METADATA_LIST)


def negotiate(
    accept: str, *, is_watch: bool = False, is_list: bool = False, is_schemaless: bool = False
) -> Representation:
    """Return the representation that a client prefers, or raise 406.

    What is schemaless has no protobuf, but for its metadata.
    """
    return _negotiated(accept[:_LENGTH_MAX], is_watch, is_list, is_schemaless)


@lru_cache(maxsize=256)  # clients repeat their headers
def _negotiated(accept: str, is_watch: bool, is_list: bool, is_schemaless: bool) -> Representation:
    if not accept.strip():
        return Representation()
    clauses = sorted(accept.split(","), key=_quality, reverse=True)
    for clause in clauses:
        form = _form(clause, is_watch=is_watch)
        if form is not None and not (is_schemaless and form == Representation(PROTOBUF)):
            return form
    raise not_acceptable((*OBJECT_TYPES, *STREAM_TYPES) if is_list else OBJECT_TYPES)


def error_representation(accept: str) -> Representation:
    """Return the representation of errors; JSON if the client accepts none."""
    for clause in accept[:_LENGTH_MAX].split(","):
        media = clause.partition(";")[0].strip().lower()
        if media in OBJECT_TYPES:
            return Representation(media)
    return Representation()


def _form(clause: str, *, is_watch: bool) -> Representation | None:
    name, *rest = (part.strip() for part in clause.split(";"))
    media = JSON if name.lower() in _ANY else name.lower()
    if media not in OBJECT_TYPES or (is_watch and media == YAML) or _quality(clause) <= 0:
        return None
    parameters = dict(part.partition("=")[::2] for part in rest)
    if parameters.get("stream", "watch") != "watch":
        return None
    if "as" not in parameters:
        return Representation(media)
    version = f"{parameters.get('g', '')}/{parameters.get('v', '')}"
    names = {shape.value: shape for shape in ObjectForm if shape is not ObjectForm.OBJECT}
    shape = names.get(parameters["as"])
    if (
        shape is None
        or version not in VERSIONS
        or (shape is ObjectForm.TABLE and media == PROTOBUF)
    ):
        return None
    return Representation(media, shape, version)


def _quality(clause: str) -> float:
    for part in clause.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


# --- accept headers -------------------------------------------------------------------------------

CLAUSES_MAX = 64


class AcceptClause(NamedTuple):
    """One clause of an Accept header."""

    media_type: str
    parameters: Mapping[str, str] = {}

    @property
    def quality(self) -> float:
        """The preference, from 0 (not acceptable) to 1."""
        try:
            return float(self.parameters.get("q", "1"))
        except ValueError:
            return 0.0

    def covers(self, media_type: str) -> bool:
        """Return whether a clause accepts a media type."""
        group = media_type.partition("/")[0]
        return self.media_type in (media_type, f"{group}/*", "*/*")


ANYTHING = AcceptClause("*/*")


def read_accept(header: str) -> list[AcceptClause]:
    """Return the clauses of a header, best first; an empty header accepts anything."""
    if not header.strip():
        return [ANYTHING]
    read = [_clause(text) for text in header.split(",")[:CLAUSES_MAX]]
    return sorted((c for c in read if c.quality > 0), key=lambda c: c.quality, reverse=True)


def _clause(text: str) -> AcceptClause:
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return AcceptClause(media_type.lower(), parameters)
