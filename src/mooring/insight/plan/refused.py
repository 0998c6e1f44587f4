"""Pods that no scheduler sees: refused by validation, or made by a workload that is refused.

They are added to a plan as pending, so that the reason can be explained like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mooring.api.catalogue import CATALOGUE
from mooring.api.codec import decode_tree
from mooring.api.core.pod import Pod
from mooring.api.errors import DecodeError
from mooring.api.meta import ObjectMeta, OwnerReference
from mooring.insight.messages import full_name
from mooring.insight.plan.planner import Plan
from mooring.insight.snapshot.builder import RefusedObject
from mooring.insight.snapshot.snapshot import identified
from mooring.scheduler.diagnosis import FitDiagnosis
from mooring.scheduler.framework import Unschedulable
from mooring.scheduler.scheduling_cycle import Pending

REFUSED: Final = "Validation"
_WORKLOADS: Final = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet")


def with_refused(plan: Plan, refused: Sequence[RefusedObject]) -> Plan:
    """Return the plan with the pods of refused objects as pending."""
    known = {full_name(each.pod) for each in plan.results}
    found: dict[str, Pending] = {}
    for each in refused:
        pod = next(_pods(each), None)
        if pod is not None and full_name(pod) not in known:
            found[full_name(pod)] = _pending(plan, pod, each)
    if not found:
        return plan
    reasons = {name: each.reason for name, each in found.items()}
    return replace(
        plan,
        results=(*plan.results, *found.values()),
        over_quota={**plan.over_quota, **reasons},
    )


def refused_results(plan: Plan) -> list[Pending]:
    """Return the pods of a plan that stand for refused objects."""
    return [
        each
        for each in plan.pending
        if each.diagnosis.pre_filter_status is not None
        and each.diagnosis.pre_filter_status.plugin == REFUSED
    ]


def _pods(refused: RefusedObject) -> Iterator[Pod]:
    """Yield the pod that a refused object is or would make."""
    if refused.kind not in ("Pod", *_WORKLOADS):
        return
    metadata = ObjectMeta(name=refused.name, namespace=refused.namespace)
    try:
        kind = CATALOGUE.find(refused.tree.get("apiVersion", ""), refused.kind)
        value: Any = decode_tree(refused.tree, kind.struct).value
    except (DecodeError, LookupError, AttributeError):
        if refused.kind == "Pod" and refused.name:
            yield identified(Pod(metadata=metadata))
        return
    if refused.kind == "Pod":
        yield identified(replace(value, metadata=replace(value.metadata, **_names(metadata))))
        return
    owner = identified(replace(value, metadata=replace(value.metadata, **_names(metadata))))
    reference = OwnerReference(
        api_version=value.api_version,
        kind=value.kind,
        name=refused.name,
        uid=owner.metadata.uid,
        controller=True,
    )
    made = ObjectMeta(
        name=f"{refused.name}-0", namespace=refused.namespace, owner_references=(reference,)
    )
    yield identified(Pod(metadata=made, spec=value.spec.template.spec))


def _names(metadata: ObjectMeta) -> dict[str, str]:
    return {"name": metadata.name, "namespace": metadata.namespace}


def _pending(plan: Plan, pod: Pod, refused: RefusedObject) -> Pending:
    reason = f'The {refused.kind} "{refused.name}" is invalid: {"; ".join(refused.reasons)}'
    status = Unschedulable(REFUSED, (reason,))
    diagnosis = FitDiagnosis(len(plan.cluster.snapshot.nodes), pre_filter_status=status)
    return Pending(pod, diagnosis, reason=reason, message="")
