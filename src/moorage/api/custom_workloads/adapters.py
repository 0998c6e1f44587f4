"""The adapters of all custom workloads, and what they do not model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from moorage.api.custom_workloads.job_sets import jobs_of_set
from moorage.api.custom_workloads.leader_worker_sets import stateful_sets_of
from moorage.api.custom_workloads.made_object import CustomWorkload, MadeObject
from moorage.api.custom_workloads.pod_sets import POD_SETS, pods_of_sets
from moorage.api.documents.document import Tree

_DRIVER: Final = "compute-domain.nvidia.com"
_CLASS: Final = "compute-domain-default-channel.nvidia.com"
_NO_UID: Final = "00000000-0000-0000-0000-000000000000"


def claim_templates_of(workload: CustomWorkload) -> Iterator[MadeObject]:
    """Yield the claim template for channels of a ComputeDomain.

    The daemons that NVIDIA's driver starts follow the pods with a channel, and are omitted.
    """
    channel = workload.spec.at("channel")
    name = channel.at("resourceClaimTemplate", "name")
    if not name.text():
        return
    parameters: dict[str, Tree] = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainChannelConfig",
        "domainID": workload.root.at("metadata", "uid").text(_NO_UID),
        "allocationMode": channel.at("allocationMode").text("Single"),
    }
    devices: dict[str, Tree] = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": _CLASS}}],
        "config": [
            {"requests": ["channel"], "opaque": {"driver": _DRIVER, "parameters": parameters}}
        ],
    }
    tree: dict[str, Tree] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": workload.metadata(name.text()),
        "spec": {"spec": {"devices": devices}},
    }
    yield MadeObject(tree, ((("metadata", "name"), name.place), ((), channel.place)))


def wrapped_objects(workload: CustomWorkload) -> Iterator[MadeObject]:
    """Yield the objects in an AppWrapper, of any kind."""
    if workload.spec.at("suspend").is_true():
        return
    for component in workload.spec.at("components").items():
        template = component.at("template")
        tree = dict(template.mapping())
        namespace = workload.root.at("metadata", "namespace").text()
        metadata = template.at("metadata").mapping()
        if namespace and "namespace" not in metadata:
            tree["metadata"] = {**metadata, "namespace": namespace}
        yield MadeObject(tree, (((), template.place),))


# --- all of them ----------------------------------------------------------------------------------

Adapter = Callable[[CustomWorkload], Iterator[MadeObject]]

ADAPTERS: Final[dict[tuple[str, str], Adapter]] = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): jobs_of_set,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): stateful_sets_of,
    ("resource.nvidia.com/v1beta1", "ComputeDomain"): claim_templates_of,
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): wrapped_objects,
    **{key: partial(pods_of_sets, sets=sets) for key, sets in POD_SETS.items()},
}


class Unmodelled(NamedTuple):
    """A field that affects pods, but has no effect here."""

    kind: str
    place: tuple[str, ...]
    fact: str


_EXCLUSIVE: Final = "no pod is kept away from the domains of others"
_ONE_BY_ONE: Final = "its pods are placed one by one, not all or none"
_TOPOLOGY: Final = "exclusive-topology"

UNMODELLED: Final = (
    Unmodelled(
        "JobSet", ("metadata", "annotations", f"alpha.jobset.sigs.k8s.io/{_TOPOLOGY}"), _EXCLUSIVE
    ),
    Unmodelled(
        "LeaderWorkerSet",
        ("metadata", "annotations", f"leaderworkerset.sigs.k8s.io/{_TOPOLOGY}"),
        _EXCLUSIVE,
    ),
    Unmodelled("Job", ("spec", "minAvailable"), _ONE_BY_ONE),
    Unmodelled("MPIJob", ("spec", "runPolicy", "schedulingPolicy"), _ONE_BY_ONE),
    Unmodelled("PyTorchJob", ("spec", "runPolicy", "schedulingPolicy"), _ONE_BY_ONE),
)


def unmodelled_in(workload: CustomWorkload) -> Iterator[Unmodelled]:
    """Yield the fields of a custom workload that have no effect here."""
    for each in UNMODELLED:
        if each.kind == workload.kind and workload.root.at(*each.place).value is not None:
            yield each
