"""JobSet: sets of Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.custom_workloads.made_object import (
    OBJECTS_MAX,
    CustomWorkload,
    MadeObject,
    with_template_labels,
)
from moorage.api.custom_workloads.written import Written
from moorage.api.documents.document import Tree

_PREFIX: Final = "jobset.sigs.k8s.io"


def jobs_of_set(workload: CustomWorkload) -> Iterator[MadeObject]:
    """Yield the jobs of a JobSet, with all replicas of each replicated job."""
    is_suspended = workload.spec.at("suspend").is_true()
    for replicated in workload.spec.at("replicatedJobs").items():
        count = replicated.at("replicas").count(1)
        if count > OBJECTS_MAX:
            raise replicated.fault(f"asks for more than the {OBJECTS_MAX:,} jobs that are made")
        for index in range(count):
            yield _job(workload, replicated, index, count, is_suspended=is_suspended)


def _job(
    workload: CustomWorkload, replicated: Written, index: int, count: int, *, is_suspended: bool
) -> MadeObject:
    name = replicated.at("name").text()
    labels = {
        f"{_PREFIX}/jobset-name": workload.name,
        f"{_PREFIX}/replicatedjob-name": name,
        f"{_PREFIX}/replicatedjob-replicas": str(count),
        f"{_PREFIX}/job-index": str(index),
        f"{_PREFIX}/restart-attempt": "0",
    }
    job, spec = replicated.at("template"), replicated.at("template", "spec")
    template = with_template_labels(spec.at("template"), labels)
    pod_spec = spec.at("template", "spec")
    template["spec"] = {"restartPolicy": "OnFailure", **pod_spec.mapping()}
    made_spec: dict[str, Tree] = {"completionMode": "Indexed", **spec.mapping()}
    made_spec |= {"template": template, "suspend": is_suspended}
    metadata = job.at("metadata")
    tree: dict[str, Tree] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": workload.metadata(
            f"{workload.name}-{name}-{index}", metadata.mapping(), labels=labels
        ),
        "spec": made_spec,
    }
    written = (
        (("spec", "suspend"), ("spec", "suspend")),
        (("spec",), spec.place),
        (("metadata", "name"), replicated.at("name").place),
        (("metadata",), metadata.place),
    )
    return MadeObject(tree, written, is_copy=index > 0)
