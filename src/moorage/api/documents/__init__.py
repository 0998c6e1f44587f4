"""Reads YAML and JSON: bytes in, documents out, with positions for messages.

    for document in read(data, source="claims.yaml"):
        for item in expand_lists(document):
            ...  # item.tree, item.duplicates, item.locate(("spec", "devices"))

Text that cannot be read raises DocumentError, `source:line:column: fact`, after the documents
before it.

reader       entry point: JSON or YAML? And documents from JSON
document     a stream with its limits; its documents, their positions, and the items of lists
scalars      YAML scalars and schemas; numbers as Kubernetes sees them in JSON
json_list    dumps: the items of one large JSON list, one by one
yaml_list    the same for YAML; yaml_block parses what tools print
json_scan    bounds, positions and duplicate keys of JSON text
yaml_tree    trees from the events of a YAML text
yaml_reader  documents from YAML
yaml_writer  YAML from trees, and values replaced in text that people wrote
"""

from moorage.api.documents.document import (
    DEFAULT_LIMITS,
    Document,
    Duplicate,
    Limits,
    PlacedError,
    Position,
    Tree,
    expand_lists,
)
from moorage.api.documents.json_list import ItemReader, ObjectList, StoredText, json_list
from moorage.api.documents.reader import has_each_key_once, has_plain_bounds, read
from moorage.api.documents.scalars import CORE, KUBERNETES, NumberText, Schema
from moorage.api.documents.yaml_list import yaml_list

__all__ = [
    "CORE",
    "DEFAULT_LIMITS",
    "KUBERNETES",
    "Document",
    "Duplicate",
    "ItemReader",
    "Limits",
    "NumberText",
    "ObjectList",
    "PlacedError",
    "Position",
    "Schema",
    "StoredText",
    "Tree",
    "expand_lists",
    "has_each_key_once",
    "has_plain_bounds",
    "json_list",
    "read",
    "yaml_list",
]
