"""Groups that must stay within one domain of a topology, of which none has room for enough pods."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from moorage.api.scheduling import PodGroup
from moorage.claims.pod_claims import group_name
from moorage.insight.answer.changes.edits import REMOVED, Edit, change_of
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.messages import counted, listed
from moorage.insight.plan.planner import new_names
from moorage.scheduler.group_forest import GROUP, AnyGroup
from moorage.scheduler.pod_groups import Gang
from moorage.scheduler.pod_groups.gang_search import find_nodes
from moorage.scheduler.pod_groups.gangs import topology_key
from moorage.scheduler.pod_groups.placements import Placement, PlacementError, placements_of
from moorage.scheduler.reservation import Reservation, release

DOMAINS_TRIED_MAX = 8
SHOWN_MAX = 3


def group_domains(case: Case) -> Iterator[Finding]:
    """Find a topology constraint that keeps a group from its nodes."""
    name = group_name(case.pod)
    features = case.cluster.features
    if name is None or not (features.pod_groups and features.group_placements):
        return
    for above in case.cluster.forest.upwards((GROUP, case.namespace, name)):
        if (key := topology_key(above)) is not None:
            yield from _constrained(case, name, above, key)
            return


def _constrained(case: Case, name: str, above: AnyGroup, key: str) -> Iterator[Finding]:
    gang = _gang(case, name)
    try:
        placements = placements_of(case.cluster, replace(gang, group=_with_key(gang, above)))
    except PlacementError:
        return
    kind = "group" if isinstance(above, PodGroup) else "composite group"
    title = f"{kind} {above.metadata.name} must stay within one {key}"
    anywhere = Proposal(
        f"let {kind} {above.metadata.name} use nodes of any {key}: no topology constraint",
        FixRank.GIVE_UP,
        (change_of(above, Edit(("spec", "schedulingConstraints"), REMOVED)),),
    )
    if not placements:
        label = Proposal(f"put the label {key} on the nodes that it may use", FixRank.ADVICE)
        yield Finding(f"{title}, and no node has that label", (label, anywhere))
        return
    fits = {each.name: _count(case, gang, each) for each in placements[:DOMAINS_TRIED_MAX]}
    most = max(fits.values())
    if most >= max(gang.needed, 1):
        return
    best = sorted(fits, key=lambda domain: -fits[domain])[:SHOWN_MAX]
    rooms = listed([f"{fits[domain]} in {domain}" for domain in best])
    where = " with its other pods" if gang.nodes else ""
    cause = f"{title}{where}: of {counted(len(gang.pods), 'pod')} there is room for {rooms}"
    yield Finding(cause, tuple(_proposals(gang, most, anywhere)))


def _proposals(gang: Gang, most: int, anywhere: Proposal) -> Iterator[Proposal]:
    policy = gang.group.spec.scheduling_policy.gang
    if policy is not None and most and not gang.scheduled:
        path = ("spec", "schedulingPolicy", "gang", "minCount")
        text = f"let group {gang.group.metadata.name} start with {counted(most, 'pod')}: minCount "
        change = change_of(gang.group, Edit(path, most))
        yield Proposal(f"{text}{most} instead of {policy.min_count}", FixRank.LESS, (change,))
    yield anywhere


def _gang(case: Case, name: str) -> Gang:
    """Return the group with its pods that wait, and where the others are."""
    group = case.cluster.groups[case.namespace, name]
    members = [
        pod
        for pod in case.snapshot.pods
        if pod.metadata.namespace == case.namespace and group_name(pod) == name
    ]
    node_of = case.cluster.snapshot.node_of
    nodes = [pod.spec.node_name or node_of(pod.metadata.uid) for pod in members]
    placed = [(pod, node) for pod, node in zip(members, nodes, strict=True) if node]
    return Gang(
        group,
        tuple(pod for pod, node in zip(members, nodes, strict=True) if not node),
        scheduled=len(placed),
        existing=len(members),
        nodes=tuple(node for _, node in placed),
        placed=tuple(pod for pod, _ in placed),
    )


def _with_key(gang: Gang, above: AnyGroup) -> PodGroup:
    """Return the group with the constraint of a group above it."""
    constraints = above.spec.scheduling_constraints
    return replace(gang.group, spec=replace(gang.group.spec, scheduling_constraints=constraints))


def _count(case: Case, gang: Gang, placement: Placement) -> int:
    """Return how many pods of a group fit into a domain."""
    cluster = case.cluster
    policy = replace(gang.group.spec.scheduling_policy, gang=None)
    basic = replace(gang.group, spec=replace(gang.group.spec, scheduling_policy=policy))
    any_of = replace(gang, group=basic, scheduled=1)
    results, _ = find_nodes(cluster, any_of, new_names(cluster), nodes=placement.nodes)
    placed = [each for each in results if isinstance(each, Reservation)]
    for reservation in reversed(placed):
        release(cluster, reservation)
    return len(placed)
