"""Rules of lint about who shares a claim, and who allocates it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.api.core.pod import PodResourceClaim
from mooring.api.gates import Gate
from mooring.insight.lint.cases import PODS, Case, N, Needs, Oddity, Rule, W
from mooring.insight.lint.context import NamespacedName
from mooring.insight.lint.pod_claim_rules import entries_of, is_made
from mooring.insight.lint.pod_rules import part_of
from mooring.insight.lint.subjects import PodPart
from mooring.insight.messages import counted

RESERVATIONS_MAX: Final = 256


def template_twice(case: Case) -> Iterator[Oddity]:
    """Give the templates from which a pod gets several claims."""
    part = part_of(case)
    if part is None:
        return
    first: dict[str, str] = {}
    for place, entry in entries_of(part):
        name = entry.resource_claim_template_name
        if not name:
            continue
        other = first.setdefault(name, entry.name)
        if other != entry.name:
            yield Oddity(
                (*place, "resourceClaimTemplateName"),
                f'claim "{other}" is made from {name}, too: the pod gets two claims with devices '
                "of their own",
                f'to share devices between containers, let both use claim "{other}"',
            )


def shared_by_replicas(case: Case) -> Iterator[Oddity]:
    """Give the claims that all pods of a controller share."""
    part = part_of(case)
    if part is None or part.pods == 1 or part.pods == 0:
        return
    number = f"all {part.pods:,} pods share" if part.pods else "the pods of all nodes share"
    for place, entry in entries_of(part):
        if entry.resource_claim_name:
            yield Oddity(
                (*place, "resourceClaimName"),
                f"{number} the devices of claim {entry.resource_claim_name}, and run only where "
                "these are",
                "for devices of their own, use resourceClaimTemplateName",
            )


def too_many_users(case: Case) -> Iterator[Oddity]:
    """Give the claims that more pods use than can be noted in it."""
    part = part_of(case)
    if part is None:
        return
    around = case.world.around
    for place, entry in entries_of(part):
        key = NamespacedName(part.namespace, entry.resource_claim_name or "")
        users = around.users.get(key, ())
        if not users or users[0].metadata is not part.metadata:
            continue
        number = sum(around.pods_of(user) for user in users if not _is_of_group(user, key, case))
        if number > RESERVATIONS_MAX:
            yield Oddity(
                (*place, "resourceClaimName"),
                f"{counted(number, 'pod')} use claim {key}, but at most {RESERVATIONS_MAX} may "
                "at a time: others stay pending",
                "use several claims, or a claim of the PodGroup",
            )


def _is_of_group(part: PodPart, key: NamespacedName, case: Case) -> bool:
    """Whether the claim is reserved for the group of the pod, once for all of them."""
    group = case.world.around.groups.get(NamespacedName(part.namespace, part.group_name or ""))
    entries = () if group is None else group.spec.resource_claims
    return any(entry.resource_claim_name == key.name for entry in entries)


# --- groups -------------------------------------------------------------------------------


def group_claim_mismatch(case: Case) -> Iterator[Oddity]:
    """Give the entries that look like one of the pod's group and are not the same."""
    part, around = part_of(case), case.world.around
    group = (
        around.groups.get(NamespacedName(part.namespace, part.group_name or "")) if part else None
    )
    if part is None or group is None:
        return
    for place, entry in entries_of(part):
        for other in group.spec.resource_claims:
            same_name = entry.name == other.name
            same_source = (
                entry.resource_claim_name == other.resource_claim_name
                and entry.resource_claim_template_name == other.resource_claim_template_name
            )
            if same_name != same_source:
                yield Oddity(
                    place,
                    f'claim "{entry.name}" is not claim "{other.name}" of PodGroup '
                    f"{part.group_name}, because "
                    f"{'what they name' if same_name else 'their name'} differs: "
                    "the pod does not share the group's devices",
                    "write name and source as in spec.resourceClaims of the group",
                )
            elif same_name and not around.context.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
                yield Oddity(
                    place,
                    f'claim "{entry.name}" is one of PodGroup {part.group_name}, but '
                    f"{Gate.DRA_WORKLOAD_RESOURCE_CLAIMS} is off",
                    f"switch on {Gate.DRA_WORKLOAD_RESOURCE_CLAIMS}",
                )


# --- without the scheduler ----------------------------------------------------------------


def bypasses_scheduler(case: Case) -> Iterator[Oddity]:
    """Give pods that name their node and use claims that nobody will allocate."""
    part = part_of(case)
    if part is None or not part.spec.node_name:
        return
    for entry in part.spec.resource_claims:
        if _is_unallocated(part, entry, case):
            yield Oddity(
                (*part.place, "nodeName"),
                f'the pod passes the scheduler by, which would allocate claim "{entry.name}": '
                "it never starts",
                "choose the node by nodeSelector or affinity instead of nodeName",
            )


def _is_unallocated(part: PodPart, entry: PodResourceClaim, case: Case) -> bool:
    if entry.resource_claim_name is None:
        return not is_made(part, entry)
    claim = case.world.around.claims.get(NamespacedName(part.namespace, entry.resource_claim_name))
    return claim is not None and claim.status.allocation is None


RULES = (
    Rule(
        "template-twice",
        N,
        Needs.NOTHING,
        "a pod with several claims from one template",
        template_twice,
        PODS,
    ),
    Rule(
        "shared-by-replicas",
        N,
        Needs.NOTHING,
        "a claim by name that all pods of a controller share",
        shared_by_replicas,
        PODS,
    ),
    Rule(
        "too-many-users",
        W,
        Needs.NOTHING,
        "a claim that more than 256 pods use",
        too_many_users,
        PODS,
    ),
    Rule(
        "group-claim-mismatch",
        W,
        Needs.GROUPS,
        "a claim of a pod that is almost a claim of its group",
        group_claim_mismatch,
        PODS,
    ),
    Rule(
        "bypasses-scheduler",
        W,
        Needs.NOTHING,
        "a pod with nodeName and claims that nobody will allocate",
        bypasses_scheduler,
        PODS,
    ),
)
