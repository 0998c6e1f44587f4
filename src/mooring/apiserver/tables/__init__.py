"""Tables: objects as rows, with the columns and cells that Kubernetes prints.

    asked_form      whether a client wants tables, metadata or whole objects
    table_of        a list of objects as a table
    table_of_one    one object, or an event of a watch, as a table
    columns_of      the columns of a kind
    Include         how much of its object a row holds; read_include reads it
    metadata_of     the metadata of an object alone; metadata_list of several

The modules beside this one hold the printers; `table` maps kinds to them.
"""

from __future__ import annotations

from mooring.apiserver.tables.columns import Column
from mooring.apiserver.tables.table import (
    VERSIONS,
    Include,
    PartialObjectMetadata,
    Row,
    Table,
    columns_of,
    metadata_of,
    table_of,
    table_of_one,
)

__all__ = [
    "VERSIONS",
    "Column",
    "Include",
    "PartialObjectMetadata",
    "Row",
    "Table",
    "columns_of",
    "metadata_of",
    "table_of",
    "table_of_one",
]
