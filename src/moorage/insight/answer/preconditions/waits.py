"""What a pod waits for before the scheduler looks at it: gates, another scheduler, its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from moorage.api.core.pod import DEFAULT_SCHEDULER, Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.claims.pod_claims import group_name
from moorage.insight.answer.changes.edits import REMOVED, Edit, change_of
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import can_go, is_gone
from moorage.insight.answer.nodes.labels import HOSTNAME
from moorage.insight.answer.preconditions.references import missing_claims, missing_classes
from moorage.insight.explain.pods import Explanation
from moorage.insight.messages import counted, listed, nearest
from moorage.insight.plan.refused import IDLE
from moorage.scheduler.group_forest import GROUP
from moorage.scheduler.pre_filter import UNMODELLED

GATE_OWNERS: Final = {
    "kueue.x-k8s.io/": ("Kueue", "kubectl get workloads shows its queue and why it waits"),
    "scheduling.x-k8s.io/": ("the coscheduling plugin", "see its PodGroup"),
    "training.kubeflow.org/": ("the training operator", "see its job"),
    "karmada.io/": ("Karmada", "see its policies"),
}
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
SCHEDULERS: Final = (
    *("volcano", "yunikorn", "koord-scheduler", "runai-scheduler", "kai-scheduler"),
    *("scheduler-plugins-scheduler", "hami-scheduler", "stork", "linkerd-scheduler"),
)


def scheduling_gates(case: Case) -> Iterator[Finding]:
    """Find scheduling gates, which their owner removes."""
    gates = [gate.name for gate in case.pod.spec.scheduling_gates]
    if not gates:
        return
    known = next((v for k, v in GATE_OWNERS.items() if gates[0].startswith(k)), None)
    what = f"it removes the gate {gates[0]} when that is done"
    owner, advice = known or ("the controller that sets it", what)
    yield Finding(
        f"scheduling gate {listed(gates, shown_max=2)}: {owner} has not admitted the pod, so the "
        "scheduler does not look at it",
        (Proposal(f"see why {owner} has not admitted the pod: {advice}", FixRank.ADVICE),),
    )


def other_scheduler(case: Case) -> Iterator[Finding]:
    """Find a pod that another scheduler is to place."""
    name = case.pod.spec.scheduler_name or DEFAULT_SCHEDULER
    status = case.explanation.pending.diagnosis.pre_filter_status
    if status is None or status.plugin != UNMODELLED or name == DEFAULT_SCHEDULER:
        return
    source = case.sources.of_pod(case.pod)
    meant = nearest(name, (DEFAULT_SCHEDULER,))
    advice = Proposal(f"see whether scheduler {name} runs, and what it says", FixRank.ADVICE)
    proposals = [advice]
    if source is not None and name not in SCHEDULERS:
        change = source.change(Edit(("schedulerName",), DEFAULT_SCHEDULER))
        text = f"use schedulerName {DEFAULT_SCHEDULER} instead of {name}"
        proposals.append(Proposal(text, FixRank.REPAIR, (change,)))
    hint = f": did you mean {meant}?" if meant else f", not to {DEFAULT_SCHEDULER}"
    yield Finding(f"schedulerName {name} leaves the pod to another scheduler{hint}", (*proposals,))


def unscheduled(case: Case) -> Iterator[Finding]:
    """Find what its user wrote that keeps a pod from the scheduler."""
    status = case.explanation.pending.diagnosis.pre_filter_status
    source = case.sources.of_pod(case.pod)
    if status is None or status.plugin != IDLE or source is None:
        return
    reason, node = case.explanation.pending.reason, case.pod.spec.node_name
    if node:
        edits = (Edit(("nodeName",), REMOVED), Edit(("nodeSelector", HOSTNAME), node))
        text = f"use nodeSelector {HOSTNAME}: {node} instead of nodeName"
        cause = f"{reason}, so nobody allocates its claims: use a node selector instead"
        yield Finding(cause, (Proposal(text, FixRank.REPAIR, (source.change(*edits),)),))
        return
    workload = source.value
    field, value = ("suspend", False) if workload.kind == "Job" else ("replicas", 1)
    queue = workload.metadata.labels.get(QUEUE_LABEL)
    if queue is not None:
        text = f"see why queue {queue} has not admitted it: kubectl get workloads"
        yield Finding(f"{reason} by Kueue, in queue {queue}", (Proposal(text, FixRank.ADVICE),))
        return
    change = change_of(workload, Edit(("spec", field), value))
    said = f"set {field} of {workload.kind} {workload.metadata.name} to {str(value).lower()}"
    cause = f"{reason}: it creates no pods before {field} is {str(value).lower()}"
    yield Finding(cause, (Proposal(said, FixRank.REPAIR, (change,)),))


def unknown_runtime_class(case: Case) -> Iterator[Finding]:
    """Find a runtime class that is not given, whose rules are part of the pod."""
    name = case.pod.spec.runtime_class_name
    status = case.explanation.pending.diagnosis.pre_filter_status
    known = {each.metadata.name for each in case.snapshot.runtimes}
    if status is None or status.plugin != UNMODELLED or not name or name in known:
        return
    if not case.unread.knows("RuntimeClass"):
        return
    source, meant = case.sources.of_pod(case.pod), nearest(name, known)
    proposals: list[Proposal] = []
    if meant is not None and source is not None:
        change = source.change(Edit(("runtimeClassName",), meant))
        text = f"use runtimeClassName {meant} instead of {name}"
        proposals.append(Proposal(text, FixRank.REPAIR, (change,)))
    advice = (
        f"give RuntimeClass {name} beside the pod: kubectl get runtimeclass {name} -o yaml; its "
        "overhead, node selector and tolerations decide"
    )
    hint = f": did you mean {meant}?" if meant else ", so what it adds to the pod is not known"
    yield Finding(
        f"there is no RuntimeClass {name} among the objects{hint}",
        (*proposals, Proposal(advice, FixRank.ADVICE)),
    )


def claims_being_deleted(case: Case) -> Iterator[Finding]:
    """Find claims that are being deleted and never come back by themselves."""
    for entry in case.pod.spec.resource_claims:
        name = entry.resource_claim_name
        claim = case.cluster.find_claim(case.namespace, name) if name else None
        if claim is None or claim.metadata.deletion_timestamp is None:
            continue
        users = claim.status.reserved_for
        names = listed([each.name for each in users])
        gone = bool(users) and all(is_gone(case, case.namespace, each) for each in users)
        by = f": it goes when pod {names} has ended" if users and not gone else ""
        yield Finding(
            f"claim {name} is being deleted since {claim.metadata.deletion_timestamp}{by}",
            (Proposal(_until_gone(case, claim, names, is_stale=gone), FixRank.FREE),),
        )


def _until_gone(case: Case, claim: ResourceClaim, users: str, *, is_stale: bool) -> str:
    """Return what ends a claim that is being deleted; nobody waits for those who do not go."""
    name = claim.metadata.name
    if not users:
        until = f"see what keeps claim {name}, its finalizers, wait until it is gone"
    elif is_stale:
        until = f"end the reservation of claim {name} for pod {users}, which is gone"
    elif can_go(case, claim):
        until = f"end pod {users}, or wait for it: then claim {name} goes"
    else:
        until = f"end pod {users}: then claim {name} goes"
    return f"{until} and create it anew, or use another claim"


# --- pod groups -----------------------------------------------------------------------------


def group_findings(case: Case) -> Iterator[Finding]:
    """Find a pod group that does not exist, or waits for more pods."""
    name = group_name(case.pod)
    if name is None:
        return
    group = case.cluster.groups.get((case.namespace, name))
    if group is None:
        yield _missing_group(case, name)
        return
    if not case.knows_waiting_pods:
        return
    gang = group.spec.scheduling_policy.gang
    members = [pod for pod in case.snapshot.pods if _is_member(pod, case.namespace, name)]
    if gang is not None and len(members) < gang.min_count:
        yield _too_few(group, len(members), gang.min_count)
        return
    if (above := _waits_above(case, group)) is not None:
        yield above
        return
    if case.explanation.verdicts and case.explanation.companion is None:
        return
    for member in members:
        if member.metadata.name != case.pod.metadata.name:
            yield from _not_ready(case, name, member)


def _waits_above(case: Case, group: PodGroup) -> Finding | None:
    """Return what the groups above a group wait for: one that is missing, or other groups."""
    forest, name = case.cluster.forest, group.metadata.name
    key = (GROUP, case.namespace, name)
    root = forest.root_of(key)
    if not forest.is_complete(key):
        cause = f"group {name} belongs to composite group {root[2]}, which does not exist"
        text = f"create CompositePodGroup {root[2]} in {case.namespace}"
        return Finding(f"{cause} in namespace {case.namespace}", (Proposal(text, FixRank.ADVICE),))
    above = forest.get(root)
    if not isinstance(above, CompositePodGroup) or above.spec.scheduling_policy.gang is None:
        return None
    wanted = above.spec.scheduling_policy.gang.min_group_count
    members = Counter(
        group_name(pod) for pod in case.snapshot.pods if pod.metadata.namespace == case.namespace
    )
    children = [*forest.leaves(root)]
    ready = [each for each in children if members[each.metadata.name] >= _minimum(each)]
    if len(ready) >= wanted or len(children) != len(forest.children(root)):
        return None  # of deeper trees the scheduler's own words are left
    cause = f"composite group {root[2]} needs {wanted} groups with enough pods, {len(ready)}"
    text = f"create the pods of another group of composite group {root[2]}"
    return Finding(
        f"{cause} {'has' if len(ready) == 1 else 'have'} them: none is placed before",
        (Proposal(text, FixRank.ADVICE),),
    )


def _minimum(group: PodGroup) -> int:
    gang = group.spec.scheduling_policy.gang
    return 1 if gang is None else gang.min_count


def _is_member(pod: Pod, namespace: str, group: str) -> bool:
    return pod.metadata.namespace == namespace and group_name(pod) == group


def _missing_group(case: Case, name: str) -> Finding:
    known = {n for namespace, n in case.cluster.groups if namespace == case.namespace}
    meant, source = nearest(name, known), case.sources.of_pod(case.pod)
    proposal = Proposal(f"create PodGroup {name} in {case.namespace}", FixRank.ADVICE)
    if meant is not None and source is not None:
        change = source.change(Edit(("schedulingGroup", "podGroupName"), meant))
        text = f"use pod group {meant} instead of {name}"
        proposal = Proposal(text, FixRank.REPAIR, (change,))
    hint = f": did you mean {meant}?" if meant else ""
    return Finding(
        f"pod group {name} does not exist in namespace {case.namespace}{hint}", (proposal,)
    )


def _too_few(group: PodGroup, count: int, minimum: int) -> Finding:
    name = group.metadata.name
    path = ("spec", "schedulingPolicy", "gang", "minCount")
    return Finding(
        f"group {name} needs {counted(minimum, 'pod')} (minCount), {count} "
        f"{'exists' if count == 1 else 'exist'}: none is placed before",
        (
            Proposal(
                f"let group {name} start with {counted(count, 'pod')}: minCount {count} instead of "
                f"{minimum}",
                FixRank.LESS,
                (change_of(group, Edit(path, count)),),
            ),
            Proposal(
                f"create the other {counted(minimum - count, 'pod')} of group {name}",
                FixRank.ADVICE,
            ),
        ),
    )


def _not_ready(case: Case, group: str, member: Pod) -> Iterator[Finding]:
    """Yield what another pod of the group waits for."""
    pending = replace(case.explanation.pending, pod=member)
    theirs = Case(case.around, Explanation(pending))
    for find in (missing_claims, missing_classes, scheduling_gates):
        for found in find(theirs):
            cause = f"group {group} waits for pod {member.metadata.name}: {found.cause}"
            yield Finding(cause, found.proposals)
            return


def fits_alone(case: Case, others: int, member: Pod, found: Finding) -> Finding:
    """Return that pods of a group fit, but not all that must be placed together.

    Whoever else has devices may free them; fewer pods at once is what the group was to prevent.
    """
    name = group_name(case.pod) or ""
    if (other := group_name(member) or "") != name:
        return _beside(case, name, other, member, found)
    group = case.cluster.groups.get((case.namespace, name))
    gang = None if group is None else group.spec.scheduling_policy.gang
    if group is None or gang is None:
        return found
    kept = [each for each in found.proposals if not each.changes]
    waits = [each for each in kept if each.rank == FixRank.FREE]
    if 0 < others < gang.min_count:
        path = ("spec", "schedulingPolicy", "gang", "minCount")
        text = (
            f"let group {name} start with {counted(others, 'pod')}: minCount {others} instead of "
        )
        change = change_of(group, Edit(path, others))
        rank = FixRank.FREE if waits else FixRank.LESS
        kept.insert(len(waits), Proposal(f"{text}{gang.min_count}", rank, (change,)))
    fit = f"group {name} needs {gang.min_count} pods at once, {others} fit; "
    return Finding(f"{fit}{member.metadata.name}: {found.cause}", tuple(kept))


def _beside(case: Case, name: str, other: str, member: Pod, found: Finding) -> Finding:
    """Return that a group fits, but another one does not that must be placed with it."""
    root = case.cluster.forest.root_of((GROUP, case.namespace, name))[2]
    kept = tuple(each for each in found.proposals if not each.changes)
    text = f"composite group {root} places its groups together; group {other} does not fit: "
    return Finding(f"{text}{member.metadata.name}: {found.cause}", kept)
