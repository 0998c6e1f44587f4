"""Why a pod gets no node: node by node, down to the device.

    scheduler's rejections        why                       words

    pending pod ─┬─ no node asked ─► preconditions ──┐
                 │                                   ├────► report
                 └─ nodes ─► NodeProbe ─► verdicts ──┘        ▲
                                  └──► diagnosis of claims ─► phrases

Nodes that reject a pod for the same reason, and whose devices leave requests equally short, share
one verdict. If a node rejects the pod for a reason other than claims, its devices are checked as
well: one shortage must not hide the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.api.scheduling import PodGroup
from moorage.claims.pod_claims import (
    ClaimEntry,
    ClaimFeatures,
    Named,
    NotNeeded,
    Owner,
    group_name,
    reference_of,
)
from moorage.client.indexer import Indexer
from moorage.controllers.resource_claim_entries import (
    EntryNeed,
    EntryProblem,
    complaint,
    group_need,
    pod_need,
    prepare,
)
from moorage.hardware.machine import EXAMPLE_PROFILES
from moorage.insight.explain.nodes import NodeProbe
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.explain.verdicts import NodeVerdict, ended_verdict, nearest_verdicts
from moorage.insight.messages import counted, full_name, listed
from moorage.insight.plan.decisions import is_full_claim
from moorage.insight.plan.planner import QUOTA, Plan, Progress, new_names
from moorage.insight.plan.refused import IDLE, REFUSED
from moorage.insight.plan.unknown import is_undecided
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.similar_names import nearest
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.errors import CycleError
from moorage.scheduler.group_forest import GROUP
from moorage.scheduler.pre_filter import UNMODELLED
from moorage.scheduler.reservation import Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Pending, attempt, schedule
from moorage.validation.pod.strategy import GATED_MESSAGE, GATED_REASON

DIAGNOSIS_S = 5.0
ALL_DIAGNOSES_S = 60.0
_MISSING_CLASS = re.compile(r"device class (\S+) does not exist")
_MISSING_CLAIM = re.compile(r'could not find ResourceClaim "([^/"]+)/([^"]+)"')
_NOT_CREATED = "ResourceClaim not created yet"
_NOTHING_WRITTEN = "no event and no condition for this"
_UNKNOWN = "nothing that Moorage could know of: it does not model this, so a node may be found"


class Explanation(Struct, frozen=True):
    """Everything there is to say about one pod without a node."""

    pending: Pending
    stopped_by: str = ""  # what stops it on every node
    written: tuple[str, ...] = ()  # what Kubernetes writes besides its scheduler's message
    facts: tuple[str, ...] = ()
    verdicts: tuple[NodeVerdict, ...] = ()  # the nearest first
    undiagnosed: int = 0  # kinds of nodes that were not diagnosed
    companion: Explanation | None = None  # a pod of the group that gets none beside the others


def explain(
    plan: Plan,
    pending: Pending,
    *,
    effort: Callable[[], Effort] = lambda: EFFORT,
    progress: Progress = lambda _, __: None,
) -> Explanation:
    """Return why a pod gets no node on the cluster as the plan leaves it.

    `effort` is called before each diagnosis, and once before nodes are grouped.
    """
    cluster, pod = plan.cluster, pending.pod
    if is_undecided(pending):
        return Explanation(pending)
    if full_name(pod) in plan.over_quota or is_full_claim(pending):
        return Explanation(pending, pending.reason, _written(plan, pending))
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending):
        facts = tuple(_precondition_facts(plan.before, ready))
        return Explanation(pending, ready.reason, _written(plan, pending), facts)
    probe = NodeProbe(ready)
    try:
        survey = ready.ranking.diagnose(probe)
    except CycleError as fault:
        return Explanation(pending, str(fault), verdicts=(ended_verdict(probe, effort),))
    verdicts = nearest_verdicts(probe, survey, effort, progress)
    return Explanation(
        pending,
        written=_written(plan, pending),
        facts=tuple(_group_facts(plan.before, cluster, pod, survey)),
        verdicts=verdicts,
        undiagnosed=sum(each.is_short and each.diagnosis is None for each in verdicts),
        companion=_companion(plan, pod, effort) if survey.feasible else None,
    )


def _written(plan: Plan, pending: Pending) -> tuple[str, ...]:
    if pending.message:
        return ()
    return kubernetes_writes(plan.before, plan.cluster.features.claims, pending)


def _companion(plan: Plan, pod: Pod, effort: Callable[[], Effort]) -> Explanation | None:
    """Return why the next pod of a group gets no node, once those before it have theirs.

    Pods of all groups that are placed together count, in the order in which they are tried.
    """
    name, namespace = group_name(pod), pod.metadata.namespace
    if name is None:
        return None
    cluster, fresh = plan.cluster, new_names(plan.cluster)
    root = cluster.forest.root_of((GROUP, namespace, name))
    names = [leaf.metadata.name for leaf in cluster.forest.leaves(root)] or [name]
    members = [
        each.pod
        for leaf in names
        for each in plan.pending
        if each.pod.metadata.namespace == namespace and group_name(each.pod) == leaf
    ]
    reservations: list[Reservation] = []
    try:
        for member in members:
            outcome = schedule(cluster, member, alone=False)
            if isinstance(outcome, Pending):
                return explain(plan, outcome, effort=effort)
            reservations.append(reserve(cluster, outcome, fresh))
    finally:
        for reservation in reversed(reservations):
            release(cluster, reservation)
    return None


class DiagnosisTimeLimit:
    """Limits the time of each diagnosis and of all together."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        each_s: float = DIAGNOSIS_S,
        all_s: float = ALL_DIAGNOSES_S,
    ) -> None:
        self._clock = clock
        self._each_s, self._all_s = each_s, all_s
        self._end_s = clock() + all_s

    def __reduce__(self) -> tuple[object, ...]:  # another machine's clock has another time
        again = partial(DiagnosisTimeLimit, each_s=self._each_s, all_s=self._all_s)
        return again, (self._clock,)

    def effort(self) -> Effort:
        """Return the effort that a diagnosis may take if it begins now."""
        begin_s = self._clock()
        end_s = min(begin_s + self._each_s, self._end_s)
        return EFFORT._replace(interrupt=partial(_interruption, self._clock, begin_s, end_s))


def _interruption(clock: Callable[[], float], begin_s: float, end_s: float) -> str | None:
    """Return why a diagnosis must end now, if it must."""
    if clock() < end_s:
        return None
    return f"no answer after {end_s - begin_s:.0f} s" if begin_s < end_s else "no time left"


# --- pods that are stopped before any node is checked -----------------------------------


def _precondition_facts(snapshot: Snapshot, pending: Pending) -> Iterator[str]:
    """Yield what may have been meant by a missing class, claim or template."""
    pod, reason = pending.pod, pending.reason
    if found := _MISSING_CLASS.search(reason):
        yield from _other_class(snapshot, found[1])
    elif found := _MISSING_CLAIM.search(reason):
        yield from _other_claim(snapshot, found[1], found[2])
    elif reason.endswith(_NOT_CREATED):
        yield from _missing_templates(snapshot, pod)


def _other_class(snapshot: Snapshot, name: str) -> Iterator[str]:
    if profile := EXAMPLE_PROFILES.get(name):
        yield f"--profile {profile} adds machines with devices of the class {name}"
    else:
        yield from _instead("class", name, (each.metadata.name for each in snapshot.classes))


def _other_claim(snapshot: Snapshot, namespace: str, name: str) -> Iterator[str]:
    elsewhere = sorted(
        claim.metadata.namespace for claim in snapshot.claims if claim.metadata.name == name
    )
    if elsewhere:
        yield f"a claim {name} is in namespace {listed(elsewhere)}; pods use those of their own"
        return
    names = (c.metadata.name for c in snapshot.claims if c.metadata.namespace == namespace)
    yield from _instead("claim", name, names)


def _missing_templates(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    namespace = pod.metadata.namespace
    here = [t.metadata.name for t in snapshot.templates if t.metadata.namespace == namespace]
    for entry in pod.spec.resource_claims:
        template = entry.resource_claim_template_name
        if template is not None and template not in here:
            yield f"there is no ResourceClaimTemplate {namespace}/{template}"
            yield from _instead("template", template, here)


def _instead(kind: str, name: str, known: Iterable[str]) -> Iterator[str]:
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        yield f"did you mean the {kind} {near}?"
    elif names:
        yield f"the {kind} there is: {listed(names)}"


def _group_facts(
    snapshot: Snapshot, cluster: Cluster, pod: Pod, survey: FitDiagnosis
) -> Iterator[str]:
    """Yield the unmet needs of a pod's group, if the pod would fit by itself."""
    name = group_name(pod)
    group = cluster.groups.get((pod.metadata.namespace, name)) if name is not None else None
    if group is None or not survey.feasible:
        return
    gang = group.spec.scheduling_policy.gang
    members = [
        each
        for each in snapshot.pods
        if each.metadata.namespace == pod.metadata.namespace and group_name(each) == name
    ]
    minimum = gang.min_count if gang is not None else 1
    alone = f"by itself the pod would fit on {counted(len(survey.feasible), 'node')}"
    if len(members) < minimum:
        yield f"{alone}, but its group {name} waits for {minimum} pods and has {len(members)}"
        return
    yield (
        f"{alone}, but its group {name} needs {minimum} of its {counted(len(members), 'pod')} "
        "placed together"
    )


# --- what Kubernetes writes about a pod that its scheduler does not try -----------------


def kubernetes_writes(
    snapshot: Snapshot, features: ClaimFeatures, pending: Pending
) -> tuple[str, ...]:
    """Return what Kubernetes writes about a pod for which its scheduler has no message.

    1. The API server sets the condition of a pod with scheduling gates.
    2. The claim controller writes events for entries whose claims it cannot create.
    """
    obstacle, pod = pending.diagnosis.pre_filter_status, pending.pod
    found: list[str] = []
    if obstacle is not None and obstacle.plugin == REFUSED:
        return (f"the error {pending.reason}",)
    if obstacle is not None and obstacle.plugin == IDLE:
        return (_NOTHING_WRITTEN,)
    if obstacle is not None and obstacle.plugin == QUOTA:
        return (_quota_event(pod, pending.reason),)
    if pod.spec.scheduling_gates:
        found.append(f"the condition PodScheduled False, {GATED_REASON}: {GATED_MESSAGE}")
    found += _claim_events(snapshot, features, pod)
    if not found and obstacle is not None and obstacle.plugin == UNMODELLED:
        return (_UNKNOWN,)
    return tuple(found) or (_NOTHING_WRITTEN,)


def _quota_event(pod: Pod, reason: str) -> str:
    """Return what Kubernetes writes where a quota refuses a pod or its claim."""
    if reason.startswith("pods "):
        return f"the error {reason}"
    entry = next((e.name for e in pod.spec.resource_claims if e.resource_claim_template_name), "")
    return (
        f"the event FailedResourceClaimCreation: PodResourceClaim {entry}: "
        f"failed to create ResourceClaim: {reason}"
    )


def _claim_events(snapshot: Snapshot, features: ClaimFeatures, pod: Pod) -> Iterator[str]:
    """Yield the events about claims of the pod that cannot be created."""
    if all(isinstance(reference_of(pod, e), Named | NotNeeded) for e in pod.spec.resource_claims):
        return
    objects = Indexer()
    prepare(objects)
    kept: tuple[Any, ...] = (*snapshot.templates, *snapshot.groups)
    for each in kept:
        if each.metadata.namespace == pod.metadata.namespace:
            objects.put(each)
    name = group_name(pod)
    group = objects.get(PodGroup, pod.metadata.namespace, name) if name is not None else None
    for entry in pod.spec.resource_claims:
        need = pod_need(objects, pod, group, entry, answers={}, features=features)
        yield from _event(pod, entry, need)
    if group is None or not features.group_claims:
        return
    for shared in group.spec.resource_claims:
        need = group_need(objects, group, shared, answers={}, features=features)
        yield from _event(group, shared, need)


def _event(owner: Owner, entry: ClaimEntry, need: EntryNeed) -> Iterator[str]:
    if isinstance(need, EntryProblem):
        event = complaint(owner, entry.name, need.reason)
        whose = "" if isinstance(owner, Pod) else f" of PodGroup {owner.metadata.name}"
        yield f"the event {event.reason}{whose}: {event.message}"
