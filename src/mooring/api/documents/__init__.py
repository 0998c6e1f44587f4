"""Read YAML and JSON text: bytes in, documents out, with places for messages.

    for document in read(data, source="claims.yaml"):
        for item in expand_lists(document):
            ...  # item.tree, item.duplicates, item.locate(("spec", "devices"))

What cannot be read raises DocumentError, `source:line:column: fact`, after the documents before it.
"""

from mooring.api.documents.document import Document, Tree
from mooring.api.documents.limits import DEFAULT_LIMITS, Limits
from mooring.api.documents.lists import expand_lists
from mooring.api.documents.numbers import NumberText
from mooring.api.documents.places import Duplicate, PlacedError, Position
from mooring.api.documents.reader import read
from mooring.api.documents.schemas import CORE, KUBERNETES, Schema

__all__ = [
    "CORE",
    "DEFAULT_LIMITS",
    "KUBERNETES",
    "Document",
    "Duplicate",
    "Limits",
    "NumberText",
    "PlacedError",
    "Position",
    "Schema",
    "Tree",
    "expand_lists",
    "read",
]
