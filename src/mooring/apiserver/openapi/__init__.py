"""Schemas and paths of what is served, as OpenAPI v3.

    OpenAPI             the index and the documents, as bytes
    openapi_document    one document
    Moved               where a document is that was asked for under an old hash

Types come from our structs, fields and what lists mean from `patching.tables`, words from
docstrings and `descriptions`.
"""

from __future__ import annotations

from mooring.apiserver.openapi.openapi import Moved, OpenAPI, openapi_document

__all__ = ["Moved", "OpenAPI", "openapi_document"]
