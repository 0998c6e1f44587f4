"""Rules of lint about the claims that pods use.

# entry: one of spec.resourceClaims; it names a claim, or a template to make one from
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.api.codec import Place
from mooring.api.core.pod import PodResourceClaim
from mooring.api.gates import Gate
from mooring.api.resource.v1 import ResourceClaimSpec
from mooring.insight.lint.cases import PODS, Case, E, N, Needs, Oddity, Rule, W
from mooring.insight.lint.pod_rules import part_of
from mooring.insight.lint.surroundings import Key
from mooring.insight.nearness import nearest
from mooring.insight.podparts import PodPart
from mooring.insight.wording import counted

RESERVATIONS_MAX: Final = 256

Entry = tuple[Place, PodResourceClaim]


def _entries(part: PodPart) -> Iterator[Entry]:
    for i, entry in enumerate(part.spec.resource_claims):
        yield (*part.place, "resourceClaims", i), entry


# --- pods and containers ------------------------------------------------------------------


def unlisted_claim(case: Case) -> Iterator[Oddity]:
    """Give the claims that a container uses and the pod does not have."""
    part = part_of(case)
    if part is None:
        return
    listed = {entry.name for entry in part.spec.resource_claims}
    for place, container in part.containers():
        for i, used in enumerate(container.resources.claims):
            if used.name not in listed:
                near = nearest(used.name, listed)
                yield Oddity(
                    (*place, "resources", "claims", i, "name"),
                    f'spec.resourceClaims of the pod has no claim "{used.name}": '
                    "an API server refuses the pod",
                    f'did you mean "{near}"?' if near else "add it to spec.resourceClaims",
                )


def unused_pod_claim(case: Case) -> Iterator[Oddity]:
    """Give the claims of a pod that no container uses."""
    part = part_of(case)
    if part is None:
        return
    used = {used.name for _, container in part.containers() for used in container.resources.claims}
    for place, entry in _entries(part):
        if entry.name not in used:
            yield Oddity(
                (*place, "name"),
                f'no container uses claim "{entry.name}": its devices are allocated and '
                "prepared, but no container sees them, unless the driver cares for the whole pod",
                "name it in resources.claims of a container",
            )


# --- what is not there --------------------------------------------------------------------


def unknown_claim(case: Case) -> Iterator[Oddity]:
    """Give the claims that are not there."""
    part = part_of(case)
    if part is None:
        return
    claims = case.world.around.claims
    for place, entry in _entries(part):
        name = entry.resource_claim_name
        if name and Key(part.namespace, name) not in claims:
            remedy = _elsewhere(name, part.namespace, tuple(claims), "claim")
            message = f"there is no ResourceClaim {part.namespace}/{name} among those given"
            yield Oddity((*place, "resourceClaimName"), message, remedy)


def unknown_template(case: Case) -> Iterator[Oddity]:
    """Give the templates that are not there and from which a claim is still to be made."""
    part = part_of(case)
    if part is None:
        return
    templates = case.world.around.templates
    for place, entry in _entries(part):
        name = entry.resource_claim_template_name
        if not name or Key(part.namespace, name) in templates or _is_made(part, entry):
            continue
        remedy = _elsewhere(name, part.namespace, tuple(templates), "template")
        message = f"there is no ResourceClaimTemplate {part.namespace}/{name} among those given"
        yield Oddity((*place, "resourceClaimTemplateName"), message, remedy)


def _elsewhere(name: str, namespace: str, known: tuple[Key, ...], what: str) -> str:
    """Return what to do about a name that is not in a namespace."""
    others = sorted(key.namespace for key in known if key.name == name)
    if others:
        return f"namespace {others[0]} has one; a pod uses only those of its own namespace"
    near = nearest(name, (key.name for key in known if key.namespace == namespace))
    return f'did you mean "{near}"?' if near else f"create the {what}, or give its file, too"


def _is_made(part: PodPart, entry: PodResourceClaim) -> bool:
    """Whether the claim was made already."""
    statuses = () if part.status is None else part.status.resource_claim_statuses or ()
    return any(status.name == entry.name for status in statuses)


def unknown_request(case: Case) -> Iterator[Oddity]:
    """Give the requests that a container names and its claim does not have."""
    part = part_of(case)
    if part is None:
        return
    requests = {entry.name: _requests(part, entry, case) for entry in part.spec.resource_claims}
    for place, container in part.containers():
        for i, used in enumerate(container.resources.claims):
            known = requests.get(used.name)
            if not used.request or known is None or used.request in known:
                continue
            near = nearest(used.request, known)
            names = ", ".join(known) or "none"
            yield Oddity(
                (*place, "resources", "claims", i, "request"),
                f'claim "{used.name}" has no request "{used.request}", its requests are: {names}; '
                f"container {container.name} gets no device",
                f'did you mean "{near}"?' if near else "name a request of the claim, or none",
            )


def _requests(part: PodPart, entry: PodResourceClaim, case: Case) -> tuple[str, ...] | None:
    """Return the requests of the claim that an entry means, None if it is not known."""
    around = case.world.around
    claim_name = entry.resource_claim_name or ""
    template_name = entry.resource_claim_template_name or ""
    claim = around.claims.get(Key(part.namespace, claim_name))
    template = around.templates.get(Key(part.namespace, template_name))
    spec: ResourceClaimSpec | None = None
    if claim is not None:
        spec = claim.spec
    elif template is not None:
        spec = template.spec.spec
    return None if spec is None else tuple(request.name for request in spec.devices.requests or ())


# --- who shares what ----------------------------------------------------------------------


def template_twice(case: Case) -> Iterator[Oddity]:
    """Give the templates from which a pod gets several claims."""
    part = part_of(case)
    if part is None:
        return
    first: dict[str, str] = {}
    for place, entry in _entries(part):
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
    for place, entry in _entries(part):
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
    for place, entry in _entries(part):
        key = Key(part.namespace, entry.resource_claim_name or "")
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


def _is_of_group(part: PodPart, key: Key, case: Case) -> bool:
    """Whether the claim is reserved for the group of the pod, once for all of them."""
    group = case.world.around.groups.get(Key(part.namespace, part.group_name or ""))
    entries = () if group is None else group.spec.resource_claims
    return any(entry.resource_claim_name == key.name for entry in entries)


# --- groups -------------------------------------------------------------------------------


def group_claim_mismatch(case: Case) -> Iterator[Oddity]:
    """Give the entries that look like one of the pod's group and are not the same."""
    part, around = part_of(case), case.world.around
    group = around.groups.get(Key(part.namespace, part.group_name or "")) if part else None
    if part is None or group is None:
        return
    for place, entry in _entries(part):
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
        return not _is_made(part, entry)
    claim = case.world.around.claims.get(Key(part.namespace, entry.resource_claim_name))
    return claim is not None and claim.status.allocation is None


RULES = (
    Rule(
        "unlisted-claim",
        E,
        Needs.NOTHING,
        "a container that uses a claim which its pod does not have",
        unlisted_claim,
        PODS,
    ),
    Rule(
        "unused-pod-claim",
        N,
        Needs.NOTHING,
        "a claim of a pod that no container uses",
        unused_pod_claim,
        PODS,
    ),
    Rule(
        "unknown-claim",
        W,
        Needs.CLAIMS,
        "a pod that uses a claim which is not among the claims given",
        unknown_claim,
        PODS,
    ),
    Rule(
        "unknown-template",
        W,
        Needs.TEMPLATES,
        "a pod that uses a template which is not among the templates given",
        unknown_template,
        PODS,
    ),
    Rule(
        "unknown-request",
        W,
        Needs.NOTHING,
        "a container that names a request which its claim does not have",
        unknown_request,
        PODS,
    ),
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
