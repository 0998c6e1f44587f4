"""Who has what a pod waits for, and whether it helps to wait for them.

    claims, pods ─► holders that may go ─► the fewest with whom the pod gets a node ─► one sentence

A proposal to wait names everybody who may go. The rehearsal finds out who of them has to, and the
fix is made of just these: what its sentence names is what was rehearsed. Nobody waits for pods of
the same workload, or for daemons and static pods, which stay with their node; nor for pods that
would be back first. A claim without users is not waited for: it has to be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from moorage.allocator.ledger import ClaimKey
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from moorage.claims.leftovers import HOW_TO_FREE, UNRESERVED
from moorage.claims.pod_claims import controller_of, group_name, owning_pod
from moorage.claims.reservations import is_group_consumer
from moorage.insight.answer.changes.departures import Departure, Holder
from moorage.insight.answer.changes.edits import ObjectChange
from moorage.insight.answer.finding import Case, Fix, FixRank, Proposal
from moorage.insight.messages import CAUSE_LENGTH_MAX, listed
from moorage.scheduler.pod_signature import PodInfo

HOLDERS_MAX: Final = 256  # of a proposal
ALONE_MAX: Final = 8  # that are tried one by one
SHRUNK_MAX: Final = 32  # of whom those are found who can be spared
NAMED_MAX: Final = 6  # that a sentence names; nobody waits for more at once
HOLDERS_SHOWN_MAX: Final = 3  # of a cause
_STAYING: Final = ("DaemonSet", "Node")  # controllers of pods that leave only with their node


class Wait(NamedTuple):
    """Who has to go, and the node that the pod gets then."""

    departure: Departure
    node: str


# --- who may go ---------------------------------------------------------------------------------


def held_claims(case: Case) -> list[tuple[ClaimKey, ResourceClaim]]:
    """Return all claims that have devices, in the order of their names."""
    found = case.cluster.claims.items()
    return sorted((each for each in found if each[1].status.allocation), key=lambda each: each[0])


def waits_for_claims(case: Case, keys: Iterable[ClaimKey]) -> Iterator[Proposal]:
    """Yield the proposal to wait for those who have the devices of claims."""
    own = {(case.namespace, e.resource_claim_name) for e in case.pod.spec.resource_claims}
    return _proposal(case, (_holder_of_claim(case, *key) for key in keys if key not in own))


def waits_for_users(case: Case, names: Iterable[str]) -> Iterator[Proposal]:
    """Yield the proposal to wait until claims of the pod itself are allocated anew."""
    found = (_holder_of_claim(case, case.namespace, name) for name in names)
    return _proposal(case, (each for each in found if each is None or not each.is_unused))


def waits_for_a_user(case: Case, claim: ResourceClaim) -> Iterator[Proposal]:
    """Yield the proposal to wait until one of the pods that use a claim has ended."""
    space, users = claim.metadata.namespace, claim.status.reserved_for
    placed = ((each, _placed_consumers(case, space, each)) for each in users)
    found = (
        Holder((f"{space}/{each.name}",), (each.uid,))
        for each, pods in placed
        if not is_group_consumer(each) and not any(_stays(case, pod) for pod in pods)
    )
    return _proposal(case, found)


def waits_for_pods(case: Case, pods: Iterable[PodInfo], node: str = "") -> Iterator[Proposal]:
    """Yield the proposal to wait until pods leave a node, or end wherever they are."""
    found = (Holder((p.full_name,), (p.key,)) for p in pods if not _stays(case, p))
    return _proposal(case, found, node)


def _proposal(case: Case, holders: Iterable[Holder | None], node: str = "") -> Iterator[Proposal]:
    able = islice((each for each in holders if each is not None), HOLDERS_MAX)
    planned = case.around.stage.placed

    def standing(holder: Holder) -> tuple[bool, bool]:
        # Nobody loses anything by what is unused, and who has not started ends last.
        return not holder.is_unused, any(name in planned for name in holder.pods)

    found = tuple(sorted(dict.fromkeys(able), key=standing))
    if found:
        yield Proposal(_sentence(case, found, node), FixRank.FREE, holders=found, left=node)


def _holder_of_claim(case: Case, namespace: str, name: str) -> Holder | None:
    """Return who can free a claim; None if nobody can."""
    claim = case.cluster.find_claim(namespace, name)
    if claim is None:
        return None
    names, uids, placed = [], [], list[PodInfo]()
    for consumer in claim.status.reserved_for:
        uids.append(consumer.uid)
        members = _placed_consumers(case, namespace, consumer)
        placed += members
        if not members and not is_group_consumer(consumer):
            names.append(f"{namespace}/{consumer.name}")
    if any(_stays(case, each) for each in placed):
        return None
    if not uids:
        return _unreserved(case, claim)
    names += [each.full_name for each in placed]
    uids += [each.key for each in placed]
    key = namespace, name
    is_unused = all(is_gone(case, namespace, each) for each in claim.status.reserved_for)
    return Holder(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(uids)), key, is_unused)


def can_go(case: Case, claim: ResourceClaim) -> bool:
    """Return whether those who use a claim may leave by themselves, as far as known."""
    return _holder_of_claim(case, claim.metadata.namespace, claim.metadata.name) is not None


def _unreserved(case: Case, claim: ResourceClaim) -> Holder | None:
    """Return a claim that is reserved for nobody; None if a pod is about to use it."""
    namespace, name, owner = claim.metadata.namespace, claim.metadata.name, owning_pod(claim)
    for pod in case.snapshot.pods:
        uses = (entry.resource_claim_name for entry in pod.spec.resource_claims)
        is_owner = owner is not None and owner.uid == pod.metadata.uid
        if is_owner or (pod.metadata.namespace == namespace and name in uses):
            return None
    return Holder((), (), (namespace, name), is_unused=True)


def _placed_consumers(
    case: Case, namespace: str, consumer: ResourceClaimConsumerReference
) -> list[PodInfo]:
    """Return the pods with a node that a claim is reserved for: one, or those of a group."""
    snapshot = case.cluster.snapshot
    if is_group_consumer(consumer):
        return [
            pod
            for state in snapshot.nodes.values()
            for pod in state.pods.values()
            if pod.group == consumer.name and pod.signature.namespace == namespace
        ]
    node = snapshot.node_of(consumer.uid)
    return [] if node is None else [snapshot.nodes[node].pods[consumer.uid]]


def is_gone(case: Case, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
    """Return whether a claim is reserved for a pod that is not there any more, as far as known."""
    if is_group_consumer(consumer) or _placed_consumers(case, namespace, consumer):
        return False
    return case.knows_running_pods and not any(
        consumer.uid == pod.metadata.uid for pod in case.snapshot.pods
    )


def _stays(case: Case, pod: PodInfo) -> bool:
    """Return whether nobody waits for a pod: it stays, is of the workload, or comes back first."""
    kind, uid = pod.controller
    own, group = controller_of(case.pod.metadata), group_name(case.pod)
    if kind in _STAYING or (own is not None and uid == own.uid):
        return True
    if group is not None and pod.group == group and pod.signature.namespace == case.namespace:
        return True
    return kind not in ("", "Job") and pod.priority > (case.pod.spec.priority or 0)


# --- who has to go ------------------------------------------------------------------------------


def wait_fixes(
    case: Case, proposal: Proposal, changes: Sequence[ObjectChange] = ()
) -> Iterator[Fix]:
    """Yield the advice to wait for those with whose departure the pod gets a node, if it does."""
    found = _wait(case, proposal.holders, changes)
    if found is not None:
        text = _sentence(case, found.departure, proposal.left)
        yield Fix(text, proposal.rank, node=found.node, waits_for=found.departure)


def _wait(case: Case, holders: Departure, changes: Sequence[ObjectChange]) -> Wait | None:
    """Return a departure of which nobody can be spared.

    1. All go together; if that does not help, nobody is waited for.
    2. Each of the first is tried alone.
    3. Only those on the node that the pod got when all had gone are left to go.
    4. One after the other of these stays, the last first, as long as the pod gets a node.
    """

    def tried(departure: Departure) -> Wait | None:
        node = None if case.is_late else case.rehearsal.node(changes, departure)
        return None if node is None else Wait(departure, node)

    best = tried(holders)
    if best is None or len(holders) == 1:
        return best
    for each in holders[:ALONE_MAX]:
        if (alone := tried((each,))) is not None:
            return alone
    there = tuple(each for each in holders if _is_on(case, each, best.node))
    best = (tried(there) if len(there) < len(holders) else None) or best
    if len(best.departure) > SHRUNK_MAX:
        return None
    for each in reversed(best.departure):
        rest = tuple(other for other in best.departure if other is not each)
        best = (tried(rest) if rest else None) or best
    return best if len(best.departure) <= NAMED_MAX else None


def _is_on(case: Case, holder: Holder, node: str) -> bool:
    """Return whether a holder has something on a node, or devices that are on no single one."""
    places = {case.cluster.snapshot.node_of(uid) for uid in holder.uids} - {None}
    if places or holder.claim is None:
        return node in places
    claim = case.cluster.find_claim(*holder.claim)
    allocation = None if claim is None else claim.status.allocation
    pools = {(r.driver, r.pool) for r in (allocation.devices.results if allocation else ())}
    near = case.cluster.inventory.slices_around(node)
    return any((each.spec.driver, each.spec.pool.name) in pools for each in near)


# --- words --------------------------------------------------------------------------------------


def _sentence(case: Case, departure: Departure, node: str) -> str:
    """Return what to do: wait until a departure has happened, and delete what nobody uses."""
    texts = [_unused(case, each) for each in departure if each.is_unused]
    leaving = [each for each in departure if not each.is_unused]
    if leaving:
        texts.append(f"wait until {_until(case, leaving, node)}")
    return ", and ".join(texts)


def _until(case: Case, leaving: Sequence[Holder], node: str) -> str:
    is_one = len(leaving) == 1
    ask = "or ask its owner" if is_one else "or ask their owners"
    claims = [each.claim for each in leaving if each.claim is not None]
    if not claims:
        names = ", ".join(_pod_name(case, name) for each in leaving for name in each.pods)
        verb = f"leave{'s' * is_one} node {node}" if node else f"end{'s' * is_one}"
        return f"pod{'s' * (not is_one)} {names} {verb}, {ask}"
    names = ", ".join(f"{named(case, *key)}{_age(case, *key)}" for key in claims)
    return f"{names} {'frees its' if is_one else 'free their'} devices, {ask}"


def _unused(case: Case, holder: Holder) -> str:
    assert holder.claim is not None
    name = _claim_name(case, *holder.claim)
    if not holder.pods:
        return f"free claim {name}, which is {UNRESERVED}: {HOW_TO_FREE}"
    pods = listed([_pod_name(case, each) for each in holder.pods], shown_max=2)
    return f"delete claim {name}, which is reserved for pod {pods}, which is gone"


def _pod_name(case: Case, full: str) -> str:
    return full.removeprefix(f"{case.namespace}/")


def _claim_name(case: Case, namespace: str, name: str) -> str:
    return name if namespace == case.namespace else f"{namespace}/{name}"


def with_holders(case: Case, cause: str, keys: Sequence[ClaimKey]) -> str:
    """Return a cause with as many of those who have the devices as there is room for."""
    for name, shown_max in ((named, 2), (short_name, HOLDERS_SHOWN_MAX), (short_name, 1)):
        names = [name(case, *key) for key in keys]
        text = f"{cause} by {listed(names, shown_max=shown_max)}"
        if names and len(text) <= CAUSE_LENGTH_MAX:
            return text
    return cause


def short_name(case: Case, namespace: str, name: str) -> str:
    """Return the pod that uses a claim; the claim if none does."""
    claim = case.cluster.find_claim(namespace, name)
    users = [] if claim is None else claim.status.reserved_for
    if not users or all(is_gone(case, namespace, each) for each in users):
        return named(case, namespace, name)
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    return f"pod {_claim_name(case, namespace, users[0].name)}{more}"


def named(case: Case, namespace: str, name: str) -> str:
    """Return a claim with the pod that uses it."""
    claim = case.cluster.find_claim(namespace, name)
    users = [] if claim is None else claim.status.reserved_for
    text = f"claim {_claim_name(case, namespace, name)}"
    if not users:
        return f"{text} ({UNRESERVED})"
    noun = "pod group" if is_group_consumer(users[0]) else "pod"
    end = ", which is gone" if all(is_gone(case, namespace, each) for each in users) else ""
    return f"{text} of {noun} {listed([each.name for each in users], shown_max=1)}{end}"


def _age(case: Case, namespace: str, name: str) -> str:
    claim = case.cluster.find_claim(namespace, name)
    allocation = None if claim is None else claim.status.allocation
    since = None if allocation is None else allocation.allocation_timestamp
    if since is None:
        return ""
    seconds = (case.context.now.instant - since.instant).total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f", for {int(seconds // size)}{unit}"
    return ""
