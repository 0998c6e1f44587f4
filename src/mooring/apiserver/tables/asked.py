"""In which form a client would like objects: as they are, as a table, or their metadata only."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mooring.apiserver.accept import Clause, read_accept
from mooring.apiserver.tables.partial import VERSIONS
from mooring.apiserver.tables.table import Include

JSON = "application/json"
MEDIA_TYPES = (JSON, "application/yaml", "application/vnd.kubernetes.protobuf")


class Form(Enum):
    """A form of objects; the values are those of `as` in Accept headers."""

    WHOLE = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


class Asked(NamedTuple):
    """What a client gets."""

    form: Form
    media_type: str
    version: str = VERSIONS[0]  # of the table or the metadata


def asked_form(accept: str, media_types: tuple[str, ...] = MEDIA_TYPES) -> Asked | None:
    """Return the first form of an Accept header that there is; None if there is none.

    Tables come in JSON and YAML only.
    """
    for clause in read_accept(accept):
        form, version = _form(clause), f"{clause.parameters.get('g')}/{clause.parameters.get('v')}"
        if form is None or (form is not Form.WHOLE and version not in VERSIONS):
            continue
        for media_type in media_types:
            is_possible = form is not Form.TABLE or media_type != MEDIA_TYPES[2]
            if clause.covers(media_type) and is_possible:
                return Asked(form, media_type, VERSIONS[0] if form is Form.WHOLE else version)
    return None


def _form(clause: Clause) -> Form | None:
    try:
        return Form(clause.parameters.get("as", ""))
    except ValueError:
        return None


def read_include(text: str) -> Include | str:
    """Return what `includeObject` means; a text that says what is wrong with it otherwise."""
    try:
        return Include(text or Include.METADATA.value)
    except ValueError:
        return (
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{text}\": must be 'Metadata', 'Object', 'None', or empty"
        )
