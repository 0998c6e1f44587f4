"""Bounds on the bodies of requests, checked before objects are made of them.

values      of a body: scalars, lists and maps, with YAML's aliases written out
items       maps in all lists of an object: each may become a struct with dozens of fields
documents   a body has one; of more, only the second is read

An object that can be stored, which has at most 1.5 MB, comes near them only if it is all brackets.
A map of 60,000 keys is within them.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from moorage.api.documents import Document, Limits, Schema, read
from moorage.api.documents.json_scan import has_few_values
from moorage.api.errors import ApiError, DecodeError
from moorage.api.go_types import ITEMS_MAX

VALUES_MAX = 128 * 1024
BODY_LIMITS = Limits(nodes_max=VALUES_MAX, aliased_nodes_max=VALUES_MAX)


def read_documents(body: bytes, source: str, schema: Schema) -> list[Document]:
    """Return the documents of a body in YAML or JSON, at most two, or raise ApiError."""
    return list(islice(read(body, source=source, limits=BODY_LIMITS, schema=schema), 2))


def check_values(body: bytes) -> None:
    """Raise DecodeError if JSON text has too many values."""
    if not has_few_values(body, VALUES_MAX):
        raise DecodeError(f"more than {VALUES_MAX} values")


def has_duplicates(body: bytes) -> bool:
    """Return whether a map of a JSON text has a key several times."""
    found = False

    def read_map(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        tree = dict(pairs)
        found = found or len(tree) < len(pairs)
        return tree

    try:
        check_values(body)
        json.loads(body, object_pairs_hook=read_map)
    except (ApiError, ValueError, RecursionError):
        return False
    return found


def check_items(tree: Any) -> None:
    """Raise DecodeError if the lists of an object have too many maps or lists."""
    if not isinstance(tree, dict | list):
        return
    count = 0
    waiting = [tree]
    while waiting:
        here = waiting.pop()
        values = here if isinstance(here, list) else here.values()
        inner = [value for value in values if isinstance(value, dict | list)]
        count += len(inner) if isinstance(here, list) else 0
        if count > ITEMS_MAX:
            words = f"the lists of the object have more than {ITEMS_MAX:,} items in all"
            raise DecodeError(words)
        waiting += inner
