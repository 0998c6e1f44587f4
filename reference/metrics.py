"""The reference page of metrics, generated from the programs' definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from moorage.apiserver.admission.pod_security import PodSecurityMetrics
from moorage.apiserver.audit.auditor import log_families
from moorage.apiserver.http.flow_control import FlowControl
from moorage.apiserver.http.metrics import Metrics as ServerMetrics
from moorage.client.indexer import Indexer
from moorage.cluster.metrics_exporter import exporter_families
from moorage.cluster.node import node_families
from moorage.controllers.metrics import DraMetrics, WorkQueuesMetrics
from moorage.insight.monitor import Figures, MonitorFamilies
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import EPOCH
from moorage.kit.metrics import Family
from moorage.node.dra.manager import NodeDraMetrics
from moorage.node.pods.pod_context import StartMetrics
from moorage.scheduler.framework import NODES_MEASURED_MAX
from moorage.scheduler.live.metrics import Metrics as SchedulerMetrics
from moorage.scheduler.live.metrics import resource_families
from reference.markdown import MADE, page_of, table_of

OURS = "moorage_"
OF_KEPS = {"resourceclaim_controller_resource_claims": "KEP-5004"}  # with labels of their own

_INTRODUCTION = """\
Every program exports its metrics in the text format of Prometheus. Names that begin with
`moorage_` are Moorage's own. All others are Kubernetes', with the types, labels and buckets of
Kubernetes 1.37, or those of a KEP; names in brackets are those of the KEPs, for the same numbers.

- Numbers are exact: integers are written in full, others with the fewest digits that read back
  as the same number.
- A combination of labels appears once there is a value for it.
- With `moor up`, `moor status` shows the addresses of all programs.
- Only users who may `get` the path can read it:
  [read the metrics](../how-to/run-a-cluster.md#read-the-metrics).

`scheduler_plugin_execution_duration_seconds` is measured in every tenth scheduling cycle, as in
Kubernetes, but always in the same ones: the first, the eleventh and so on. In such a cycle the
filters and scores of the first {nodes} nodes are measured; the search for devices is measured on
every node that is asked."""


class MetricsPage(NamedTuple):
    """A page of metrics of a program."""

    program: str
    where: str
    families: tuple[Family, ...]


def metrics_pages() -> tuple[MetricsPage, ...]:
    """Return all pages of metrics, of all programs."""
    at = "`/metrics` at `--metrics-bind-address`"
    return (
        MetricsPage(
            "moor server", "`/metrics`, for users who may read that path", tuple(_server())
        ),
        MetricsPage("moor scheduler", at, (*SchedulerMetrics().families(), FAULTS.total)),
        MetricsPage(
            "moor scheduler, resources of pods",
            "`/metrics/resources` at `--metrics-bind-address`",
            tuple(resource_families(())),
        ),
        MetricsPage("moor controllers", at, tuple(_controllers())),
        MetricsPage("moor metrics", f"{at}; also in the format of OpenMetrics", tuple(_exporter())),
        MetricsPage("moor node", f"{at}, and `/metrics` at the node's port", tuple(_node())),
    )


def metrics_page() -> str:
    """Return the page of all metrics."""
    introduction = _INTRODUCTION.format(nodes=NODES_MEASURED_MAX)
    sections = ["# Metrics", MADE, introduction]
    columns = ("metric", "type", "labels", "meaning", "whose")
    for page in metrics_pages():
        sections += [
            f"## {page.program}",
            f"{page.where[0].upper()}{page.where[1:]}.",
            table_of(columns, map(_row, sorted(page.families, key=lambda each: each.name))),
        ]
    return page_of(sections)


def _row(family: Family) -> tuple[str, ...]:
    name = " ".join((f"`{family.name}`", *(f"(`{alias}`)" for alias in family.aliases)))
    labels = ", ".join(f"`{label}`" for label in family.labels)
    shipped = "Moorage" if family.name.startswith(OURS) else "Kubernetes"
    whose = OF_KEPS.get(family.name, shipped)
    return name, family.type, labels, family.text, whose


def _server() -> Iterator[Family]:
    yield from ServerMetrics().families()
    yield from FlowControl().families()
    yield from log_families(lambda: 0, lambda: 0)
    yield from PodSecurityMetrics().families()


def _controllers() -> Iterator[Family]:
    yield from DraMetrics().families(Indexer())
    yield from WorkQueuesMetrics().families()
    yield FAULTS.total


def _exporter() -> Iterator[Family]:
    yield from MonitorFamilies(Figures, lambda: EPOCH).families()
    passes: Any = None  # Not needed for the names.
    yield from exporter_families(passes)


def _node() -> Iterator[Family]:
    yield from node_families(list, lambda _: [], StartMetrics(), NodeDraMetrics(dict))
