"""Pods that no scheduler sees: refused, not created yet, or with a node that their user chose.

    refused   by validation, or made by a workload that is
    idle      of a job that is suspended or a workload with 0 replicas
    bypassing  with a node name of their own, and claims that nobody allocates

They are added to a plan as pending, so that the reason can be explained like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.batch import Job
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.errors import DecodeError
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.insight.messages import full_name
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import identified
from moorage.insight.snapshot.written_objects import RefusedObject
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.scheduling_cycle import Pending

REFUSED: Final = "Validation"
IDLE: Final = "NotScheduled"
PENDING: Final = ("", "Pending")
_WORKLOADS: Final = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet")


def with_refused(plan: Plan, refused: Sequence[RefusedObject]) -> Plan:
    """Return the plan with the pods of refused objects as pending."""
    known = {full_name(each.pod) for each in plan.results}
    found: dict[str, Pending] = {}
    for each in refused:
        pod = next(_pods(each), None)
        if pod is not None and full_name(pod) not in known:
            found[full_name(pod)] = _pending(plan, pod, each)
    return _with_pending(plan, found)


def _with_pending(plan: Plan, found: dict[str, Pending]) -> Plan:
    if not found:
        return plan
    reasons = {name: each.reason for name, each in found.items()}
    return replace(
        plan,
        results=(*plan.results, *found.values()),
        over_quota={**plan.over_quota, **reasons},
    )


def with_unscheduled(plan: Plan) -> Plan:
    """Return the plan with pods that their objects keep from the scheduler."""
    known = {full_name(each.pod) for each in plan.results}
    found: dict[str, Pending] = {}
    for pod, reason in (*_idle(plan), *_bypassing(plan)):
        if full_name(pod) not in known:
            found[full_name(pod)] = _stopped(plan, pod, reason, IDLE)
    return _with_pending(plan, found)


def _idle(plan: Plan) -> Iterator[tuple[Pod, str]]:
    """Yield a pod for each workload that creates none."""
    for each in plan.before.controllers:
        name = full_name(each)
        if isinstance(each, Job) and each.spec.suspend:
            yield _model(each), f"Job {name} is suspended"
        elif getattr(each.spec, "replicas", None) == 0:
            yield _model(each), f"{each.kind} {name} has 0 replicas"


def _bypassing(plan: Plan) -> Iterator[tuple[Pod, str]]:
    """Yield the pods whose claims nobody allocates, because no scheduler sees the pods."""
    claims = plan.cluster.claims
    for pod in plan.before.pods:
        if (
            not pod.spec.node_name
            or not pod.spec.resource_claims
            or pod.status.phase not in PENDING
        ):
            continue
        made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name or made.get(entry.name)
            claim = claims.get((pod.metadata.namespace, name)) if name else None
            if claim is not None and claim.status.allocation is None:
                yield pod, f"nodeName {pod.spec.node_name} keeps the pod from the scheduler"
                break


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
    yield _model(identified(replace(value, metadata=replace(value.metadata, **_names(metadata)))))


def _model(workload: Any) -> Pod:
    """Return the first pod that a workload would create, as it is written."""
    metadata = workload.metadata
    reference = OwnerReference(
        api_version=workload.api_version,
        kind=workload.kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
    )
    made = ObjectMeta(
        name=f"{metadata.name}-0", namespace=metadata.namespace, owner_references=(reference,)
    )
    pod: Pod = identified(Pod(metadata=made, spec=workload.spec.template.spec))
    return pod


def _names(metadata: ObjectMeta) -> dict[str, str]:
    return {"name": metadata.name, "namespace": metadata.namespace}


def _pending(plan: Plan, pod: Pod, refused: RefusedObject) -> Pending:
    reason = f'The {refused.kind} "{refused.name}" is invalid: {"; ".join(refused.reasons)}'
    return _stopped(plan, pod, reason, REFUSED)


def _stopped(plan: Plan, pod: Pod, reason: str, by: str) -> Pending:
    status = Unschedulable(by, (reason,))
    diagnosis = FitDiagnosis(len(plan.cluster.snapshot.nodes), pre_filter_status=status)
    return Pending(pod, diagnosis, reason=reason, message="")
