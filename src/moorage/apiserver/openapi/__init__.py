"""OpenAPI v3 and v2 of the served kinds.

documents   OpenAPI: the index and the documents, as bytes; openapi_document makes one; Moved says
            where a document is that a client knows under an old hash
paths       paths, operations and parameters
json_schemas  the same types as JSON Schemas for editors
schemas     components: types and fields, derived from `moorage.api.schema`
"""

from __future__ import annotations

from moorage.apiserver.openapi.documents import Moved, OpenAPI, openapi_document

__all__ = ["Moved", "OpenAPI", "openapi_document"]
