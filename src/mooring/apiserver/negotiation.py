"""In which form a client wants its answer: from the Accept header."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from mooring.api import protobuf
from mooring.apiserver.status import not_acceptable
from mooring.apiserver.tables import VERSIONS

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = protobuf.CONTENT_TYPE

OBJECT_TYPES = (JSON, YAML, PROTOBUF)
STREAM_TYPES = (f"{JSON};stream=watch", protobuf.WATCH_CONTENT_TYPE)

_ANY = ("*/*", "application/*")
_LENGTH_MAX = 4096


class Shape(Enum):
    """What is told of objects."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


class Form(NamedTuple):
    """The form of an answer."""

    media: str = JSON
    shape: Shape = Shape.OBJECT
    version: str = VERSIONS[0]  # of the table, or of the metadata

    @property
    def is_partial(self) -> bool:
        """Whether only metadata is wanted."""
        return self.shape in (Shape.METADATA, Shape.METADATA_LIST)


@lru_cache(maxsize=256)  # clients accept the same again and again
def negotiate(accept: str, *, is_watch: bool = False, is_list: bool = False) -> Form:
    """Return the form that a client prefers, or raise that there is none that it accepts."""
    if not accept.strip():
        return Form()
    clauses = sorted(accept[:_LENGTH_MAX].split(","), key=_quality, reverse=True)
    for clause in clauses:
        form = _form(clause, is_watch=is_watch)
        if form is not None:
            return form
    raise not_acceptable((*OBJECT_TYPES, *STREAM_TYPES) if is_list else OBJECT_TYPES)


def form_of_errors(accept: str) -> Form:
    """Return the form in which a client is told of an error; JSON if it likes none."""
    for clause in accept[:_LENGTH_MAX].split(","):
        media = clause.partition(";")[0].strip().lower()
        if media in OBJECT_TYPES:
            return Form(media)
    return Form()


def _form(clause: str, *, is_watch: bool) -> Form | None:
    name, *rest = (part.strip() for part in clause.split(";"))
    media = JSON if name.lower() in _ANY else name.lower()
    if media not in OBJECT_TYPES or (is_watch and media == YAML) or _quality(clause) <= 0:
        return None
    parameters = dict(part.partition("=")[::2] for part in rest)
    if parameters.get("stream", "watch") != "watch":
        return None
    if "as" not in parameters:
        return Form(media)
    version = f"{parameters.get('g', '')}/{parameters.get('v', '')}"
    names = {shape.value: shape for shape in Shape if shape is not Shape.OBJECT}
    shape = names.get(parameters["as"])
    if shape is None or version not in VERSIONS or (shape is Shape.TABLE and media == PROTOBUF):
        return None
    return Form(media, shape, version)


def _quality(clause: str) -> float:
    for part in clause.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
