"""Reads YAML and JSON: bytes in, documents out, with positions for messages.

    for document in read(data, source="claims.yaml"):
        for item in expand_lists(document):
            ...  # item.tree, item.duplicates, item.locate(("spec", "devices"))

Text that cannot be read raises DocumentError, `source:line:column: fact`, after the documents
before it.

reader       entry point: JSON or YAML?
document     one document, its positions, and the items of lists
stream       one input with its limits
numbers      numbers as Kubernetes sees them in JSON
scalars      YAML scalars and schemas
json_scan    bounds, positions and duplicate keys of JSON text
json_reader  documents from JSON
yaml_events  events of a YAML text
yaml_tree    trees from events
yaml_reader  documents from YAML
"""

from mooring.api.documents.document import (
    Document,
    Duplicate,
    PlacedError,
    Position,
    Tree,
    expand_lists,
)
from mooring.api.documents.numbers import NumberText
from mooring.api.documents.reader import read
from mooring.api.documents.scalars import CORE, KUBERNETES, Schema
from mooring.api.documents.stream import DEFAULT_LIMITS, Limits

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
