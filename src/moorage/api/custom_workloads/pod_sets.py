"""Kinds with sets of pods, each of which has a template and a number.

Pods have the names that their operators give them, with a number in place of random letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from moorage.api.custom_workloads.made_object import OBJECTS_MAX, CustomWorkload, MadeObject
from moorage.api.custom_workloads.written import Written

_KUEUE: Final = "kueue.x-k8s.io/v1beta1"


class PodSets(NamedTuple):
    """Where a kind has its sets of pods, and where a set has its fields."""

    sets: tuple[str, ...]  # the path of a list or map of them, or of a single one
    pod_name: str  # of {name}, {set} and {index}
    replicas: str = "replicas"
    replicas_default: int = 1
    is_single: bool = False
    set_name: str = ""  # the field with the name of a set; of a map, the key is its name
    set_name_default: str = ""  # of {index}
    suspend: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


def _kubeflow(replica_specs: str) -> tuple[PodSets, ...]:
    return (
        PodSets(
            ("spec", replica_specs),
            "{name}-{set}-{index}",
            suspend=("spec", "runPolicy", "suspend"),
            labels=(
                ("training.kubeflow.org/job-name", "{name}"),
                ("training.kubeflow.org/job-role", "{set}"),
                ("training.kubeflow.org/replica-type", "{set}"),
            ),
        ),
    )


def _ray(*cluster: str) -> tuple[PodSets, ...]:
    suspend = (*cluster, "suspend")
    label = ("ray.io/cluster", "{name}")
    return (
        PodSets(
            (*cluster, "headGroupSpec"),
            "{name}-head-{index}",
            replicas="",
            is_single=True,
            suspend=suspend,
            labels=(label, ("ray.io/node-type", "head")),
        ),
        PodSets(
            (*cluster, "workerGroupSpecs"),
            "{name}-{set}-worker-{index}",
            replicas_default=0,
            set_name="groupName",
            suspend=suspend,
            labels=(label, ("ray.io/node-type", "worker"), ("ray.io/group", "{set}")),
        ),
    )


POD_SETS: Final = {
    ("kubeflow.org/v2beta1", "MPIJob"): _kubeflow("mpiReplicaSpecs"),
    ("kubeflow.org/v1", "MPIJob"): _kubeflow("mpiReplicaSpecs"),
    ("kubeflow.org/v1", "PyTorchJob"): _kubeflow("pytorchReplicaSpecs"),
    ("kubeflow.org/v1", "TFJob"): _kubeflow("tfReplicaSpecs"),
    ("kubeflow.org/v1", "JAXJob"): _kubeflow("jaxReplicaSpecs"),
    ("kubeflow.org/v1", "PaddleJob"): _kubeflow("paddleReplicaSpecs"),
    ("kubeflow.org/v1", "XGBoostJob"): _kubeflow("xgbReplicaSpecs"),
    **{
        (version, kind): _ray("spec", *cluster)
        for version in ("ray.io/v1", "ray.io/v1alpha1")
        for kind, cluster in (
            ("RayCluster", ()),
            ("RayJob", ("rayClusterSpec",)),
            ("RayService", ("rayClusterConfig",)),
        )
    },
    ("batch.volcano.sh/v1alpha1", "Job"): (
        PodSets(
            ("spec", "tasks"),
            "{name}-{set}-{index}",
            set_name="name",
            set_name_default="default{index}",
            labels=(
                ("volcano.sh/job-name", "{name}"),
                ("volcano.sh/task-spec", "{set}"),
            ),
        ),
    ),
    **{
        (version, "Workload"): (
            PodSets(
                ("spec", "podSets"),
                "{name}-{set}-{index}",
                replicas="count",
                set_name="name",
                set_name_default="main",
                labels=(("kueue.x-k8s.io/podset", "{set}"),),
            ),
        )
        for version in (_KUEUE, "kueue.x-k8s.io/v1beta2")
    },
}


def pods_of_sets(workload: CustomWorkload, sets: tuple[PodSets, ...]) -> Iterator[MadeObject]:
    """Yield the pods of all sets."""
    if _is_made_by_owner(workload):
        return
    for each in sets:
        if each.suspend and workload.root.at(*each.suspend).is_true():
            continue
        for name, pod_set in _sets(workload, each):
            yield from _pods(workload, each, name, pod_set)


def _is_made_by_owner(workload: CustomWorkload) -> bool:
    """Return whether a Workload describes pods that another object creates."""
    owners = workload.root.at("metadata", "ownerReferences").items()
    return workload.kind == "Workload" and any(owner.at("controller").is_true() for owner in owners)


def _sets(workload: CustomWorkload, sets: PodSets) -> Iterator[tuple[str, Written]]:
    found = workload.root.at(*sets.sets)
    if sets.is_single:
        if found.value is not None:
            yield "", found
    elif sets.set_name:
        for index, item in enumerate(found.items()):
            default = sets.set_name_default.format(index=index)
            yield item.at(sets.set_name).text(default), item
    else:
        for key, item in found.entries():
            yield key.lower(), item


def _pods(
    workload: CustomWorkload, sets: PodSets, set_name: str, pod_set: Written
) -> Iterator[MadeObject]:
    count = _count(sets, pod_set)
    if count > OBJECTS_MAX:
        raise pod_set.fault(f"asks for more than the {OBJECTS_MAX:,} pods that are made")
    facts = {"name": workload.name, "set": set_name}
    names = (sets.pod_name.format(index=index, **facts) for index in range(count))
    labels = {key: value.format(**facts) for key, value in sets.labels}
    return workload.pods(names, pod_set.at("template"), labels)


def _count(sets: PodSets, pod_set: Written) -> int:
    """Return the number of pods of a set; Ray's sets have bounds, and several hosts per replica."""
    if not sets.replicas:
        return 1
    if pod_set.at("suspend").is_true():
        return 0
    count = pod_set.at(sets.replicas).count(sets.replicas_default)
    count = min(count, pod_set.at("maxReplicas").count(count))
    count = max(count, pod_set.at("minReplicas").count(0))
    return count * pod_set.at("numOfHosts").count(1)
