"""How much text, and how wild, the reader takes before it answers with an error."""

from __future__ import annotations

from dataclasses import dataclass

DEPTH_CEILING = 200
"""The standard library's JSON reader and our own walks recurse, so depth has a hard end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one stream of documents.

    bytes_max          length of the whole input
    documents_max      documents in it, empty ones included
    depth_max          lists and mappings inside one another
    nodes_max          values in all documents together, aliases counted as written out
    aliased_nodes_max  values of one document that come from aliases (Kubernetes' own bound)
    duplicates_max     duplicate keys noted per document; the rest is dropped
    """

    bytes_max: int = 64 * 1024 * 1024
    documents_max: int = 100_000
    depth_max: int = 100
    nodes_max: int = 5_000_000
    aliased_nodes_max: int = 400_000
    duplicates_max: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.depth_max <= DEPTH_CEILING:
            raise ValueError(f"depth_max must be between 1 and {DEPTH_CEILING}: {self.depth_max}")


DEFAULT_LIMITS = Limits()
