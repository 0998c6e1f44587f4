"""Tables: objects as rows, with the columns and cells that Kubernetes prints.

table               Table and PartialObjectMetadata; the printer of each kind
columns             columns and printers; ages, labels and selectors as texts
pods                the printer of pods
workloads           printers of apps and batch
resource            printers of resource.k8s.io
admission           printers of admissionregistration.k8s.io
custom              printers of custom resources, by their definitions
services_and_volumes
                    printers of services, volumes, budgets, cron jobs, autoscalers
data_kinds          printers of kinds that others act on
core                printers of all other groups
"""

from __future__ import annotations

from moorage.apiserver.tables.columns import Column
from moorage.apiserver.tables.table import (
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
