"""Small clusters with GPUs, and pods to fit into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaimTemplate, ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.insight.fit import Fit, Fitted, Subject, fit
from moorage.insight.messages import Concern
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context
from tests.scheduler.makers import pod
from tests.scheduler.scenes import NOW, device_class, slice_of, wanting

CONTEXT = Context(gates=Gates.parse(""), now=Timestamp(NOW))
NUMA = "gpu.example.com/numa"


def template(
    *requests: Mapping[str, Any], name: str = "gpus", constraints: Sequence[Any] = ()
) -> ResourceClaimTemplate:
    devices = {"requests": list(requests) or [wanting()], "constraints": list(constraints)}
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": devices}},
    }
    return decode_tree(tree, ResourceClaimTemplate).value


def using(*templates: str, name: str = "train", **fields: Any) -> Pod:
    """Return a pod with a claim from each template."""
    entries = [
        {"name": f"c{number}", "resourceClaimTemplateName": each}
        for number, each in enumerate(templates)
    ]
    return pod(name, resourceClaims=entries, **fields)


def gpus(node: str, numa: Iterable[int]) -> ResourceSlice:
    """Return the GPUs of a node, each on a NUMA node."""
    return slice_of(
        node,
        listed=[
            {"name": f"gpu-{number}", "attributes": {"numa": {"int": each}}}
            for number, each in enumerate(numa)
        ],
    )


def fitted(subject: Subject, *around: Any, **options: Any) -> Fit:
    """Return what fits into a cluster that has the subject among its objects."""
    snapshot = Snapshot.of([device_class(), *around, subject])
    found = fit(snapshot, subject, CONTEXT, **options)
    assert isinstance(found, Fitted), found
    return found.fit


def refused(subject: Subject, *around: Any) -> Concern:
    found = fit(Snapshot.of([device_class(), *around, subject]), subject, CONTEXT)
    assert isinstance(found, Concern)
    return found


def counts(found: Fit) -> dict[str, int]:
    return {place.node: place.replicas for place in found.places}
