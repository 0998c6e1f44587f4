"""LeaderWorkerSet: groups of pods, a leader and its workers each.

StatefulSet NAME          the leaders NAME-0, NAME-1, …
StatefulSet NAME-GROUP    the workers NAME-GROUP-1, NAME-GROUP-2, … of one leader
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from moorage.api.custom_workloads.made_object import (
    OBJECTS_MAX,
    CustomWorkload,
    MadeObject,
    with_template_labels,
)
from moorage.api.custom_workloads.written import Written
from moorage.api.documents.document import Tree

_PREFIX: Final = "leaderworkerset.sigs.k8s.io"
_REPLICAS: Final = ("spec", "replicas")


def stateful_sets_of(workload: CustomWorkload) -> Iterator[MadeObject]:
    """Yield the StatefulSet of the leaders, and one for the workers of each leader."""
    groups = workload.spec.at("replicas").count(1)
    templates = workload.spec.at("leaderWorkerTemplate")
    size = templates.at("size").count(1)
    if groups * size > OBJECTS_MAX:
        raise workload.spec.fault(f"asks for more than the {OBJECTS_MAX:,} pods that are made")
    leader, worker = templates.at("leaderTemplate"), templates.at("workerTemplate")
    if leader.value is None:
        leader = worker
    labels = {f"{_PREFIX}/name": workload.name}
    first = {**labels, f"{_PREFIX}/worker-index": "0"}
    made = _stateful_set(workload, workload.name, leader, first, {"replicas": groups})
    yield made._replace(written=((_REPLICAS, workload.spec.at("replicas").place), *made.written))
    for group in range(groups if size > 1 else 0):
        more: dict[str, Tree] = {"replicas": size - 1, "ordinals": {"start": 1}}
        of_group = {**labels, f"{_PREFIX}/group-index": str(group)}
        made = _stateful_set(workload, f"{workload.name}-{group}", worker, of_group, more)
        yield made._replace(is_copy=group > 0 or leader is worker)


def _stateful_set(
    workload: CustomWorkload,
    name: str,
    template: Written,
    labels: Mapping[str, str],
    more: Mapping[str, Tree],
) -> MadeObject:
    spec: dict[str, Tree] = {
        "serviceName": workload.name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": dict(labels)},
        "template": with_template_labels(template, labels),
        **more,
    }
    claims = workload.spec.at("leaderWorkerTemplate", "volumeClaimTemplates").value
    if claims is not None:
        spec["volumeClaimTemplates"] = claims
    tree: dict[str, Tree] = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": workload.metadata(name, labels=labels),
        "spec": spec,
    }
    written = ((("spec", "template"), template.place), (("metadata", "name"), ("metadata", "name")))
    return MadeObject(tree, written)
