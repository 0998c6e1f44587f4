"""Rules about pods and controllers: extended resources, pod groups, and the claims that pods use.

# entry: one of spec.resourceClaims; it names a claim, or a template to create one from
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import chain
from typing import Final

from moorage.api.core import Pod
from moorage.api.core.pod import PodResourceClaim
from moorage.api.field_path import MapKey, Place
from moorage.api.gates import Gate
from moorage.api.resource.v1 import DEVICE_CLASS_RESOURCE_PREFIX, ResourceClaimSpec
from moorage.claims.extended_resources import is_device_resource
from moorage.insight.lint.context import NamespacedName, key_of
from moorage.insight.lint.rule import (
    GROUPS,
    PODS,
    Case,
    E,
    N,
    Needs,
    Oddity,
    RuleTable,
    Severity,
    W,
)
from moorage.insight.lint.subjects import PodPart, pod_part_of
from moorage.insight.messages import counted, suggestion
from moorage.scheduler.pre_filter import unmodelled as not_modelled

RULES = RuleTable(PODS)
PodCheck = Callable[[PodPart, Case], Iterable[Oddity]]
Entry = tuple[Place, PodResourceClaim]
RESERVATIONS_MAX: Final = 256


def _pod_rule(severity: Severity, needs: Needs = Needs.NOTHING) -> Callable[[PodCheck], PodCheck]:
    """Add a rule about pods that still need something and have no controller in the input."""

    def added(check: PodCheck) -> PodCheck:
        @RULES.add(severity, needs)
        @wraps(check)
        def checked(case: Case) -> Iterable[Oddity]:
            part = pod_part_of(case.subject.value)
            objects = case.context.objects
            if part is None or part.is_over or objects.is_made_by_given(part.metadata):
                return ()
            return check(part, case)

        return check

    return added


# --- extended resources -----------------------------------------------------------------


@_pod_rule(W, Needs.CLASSES)
def unknown_extended_resource(part: PodPart, case: Case) -> Iterator[Oddity]:
    """An extended resource that no class, and no node given, provides."""
    for place, name in _extended_resources(part):
        if case.context.class_index.class_for(name) is not None:
            if not case.context.objects.context.enabled(Gate.DRA_EXTENDED_RESOURCE):
                message = f"a class serves {name}, but {Gate.DRA_EXTENDED_RESOURCE} is off"
                yield Oddity(place, message, f"switch on {Gate.DRA_EXTENDED_RESOURCE}")
        elif name.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
            class_name = name.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX)
            yield Oddity(
                place,
                f'there is no class "{class_name}" among those given',
                suggestion(
                    class_name, case.context.classes, "create the class, or give its file, too"
                ),
            )
        elif case.context.objects.nodes and not case.context.objects.node_resources[name]:
            yield Oddity(
                place,
                f"neither a class nor a node given has {name}",
                suggestion(
                    name, _resources(case), "set spec.extendedResourceName of a DeviceClass"
                ),
            )


def _resources(case: Case) -> Iterator[str]:
    named = {class_.spec.extended_resource_name for class_ in case.context.classes.values()}
    return chain(filter(None, named), case.context.objects.node_resources)


@_pod_rule(N, Needs.CLASSES)
def extended_resource_twice(part: PodPart, case: Case) -> Iterator[Oddity]:
    """An extended resource that both a class and nodes provide."""
    for place, name in _extended_resources(part):
        class_ = case.context.class_index.class_for(name)
        nodes = case.context.objects.node_resources[name]
        if class_ is not None and nodes:
            yield Oddity(
                place,
                f"class {class_.metadata.name} stands for {name}, but {counted(nodes, 'node')} "
                "have it from a device plugin: there no claim is made",
                "nothing to do while a cluster moves from device plugins to DRA",
            )


def _extended_resources(part: PodPart) -> Iterator[tuple[Place, str]]:
    """Yield the extended resources that containers request, with their paths."""
    for place, container in part.containers():
        seen: set[str] = set()
        resources = container.resources
        for field, amounts in (("requests", resources.requests), ("limits", resources.limits)):
            for name, quantity in amounts.items():
                if name not in seen and is_device_resource(name) and not quantity.is_zero:
                    seen.add(name)
                    yield (*place, "resources", field, MapKey(name)), name


# --- pod groups -------------------------------------------------------------------------


@_pod_rule(W, Needs.GROUPS)
def unknown_group(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A pod in a group that is not among the groups given."""
    if not part.group_name:
        return
    groups = case.context.objects.groups
    key = NamespacedName(part.namespace, part.group_name)
    if key not in groups:
        known = (each.name for each in groups if each.namespace == key.namespace)
        yield Oddity(
            (*part.place, "schedulingGroup", "podGroupName"),
            f"there is no PodGroup {key} among those given: the pod stays pending without it",
            suggestion(key.name, known, "create the group, or give its file, too"),
        )


@RULES.add(W, about=GROUPS)
def gang_too_small(case: Case) -> Iterator[Oddity]:
    """A gang that needs more pods than are given."""
    group = case.subject.value
    if not case.context.unread.knows("Pod", group.metadata.namespace):
        return
    gang = group.spec.scheduling_policy.gang
    pods = case.context.objects.members[key_of(group.metadata)]
    if gang is not None and 0 < pods < gang.min_count:
        yield Oddity(
            ("spec", "schedulingPolicy", "gang", "minCount"),
            f"{gang.min_count} pods must be there before any is scheduled, but only "
            f"{counted(pods, 'pod')} of the group {'is' if pods == 1 else 'are'} given",
            "lower minCount, or create more pods",
        )


@_pod_rule(N)
def unmodelled(part: PodPart, _: Case) -> Iterator[Oddity]:
    """A pod that Moorage's scheduler does not know how to place."""
    pod = Pod(metadata=part.metadata, spec=part.spec)
    is_admitted = part.status is not None and bool(part.metadata.uid)
    refusal = not_modelled(pod, is_admitted=is_admitted)
    for text in () if refusal is None else refusal.reasons:
        yield Oddity(
            part.place,
            f"Moorage cannot plan the pod: {text}",
            "nothing to do: a cluster can schedule it",
        )


# --- claims of pods ---------------------------------------------------------------------


@_pod_rule(E)
def unlisted_claim(part: PodPart, _: Case) -> Iterator[Oddity]:
    """A container that uses a claim which its pod does not have."""
    listed = {entry.name for entry in part.spec.resource_claims}
    for place, container in part.containers():
        for i, used in enumerate(container.resources.claims):
            if used.name not in listed:
                yield Oddity(
                    (*place, "resources", "claims", i, "name"),
                    f'spec.resourceClaims of the pod has no claim "{used.name}": '
                    "an API server refuses the pod",
                    suggestion(used.name, listed, "add it to spec.resourceClaims"),
                )


@_pod_rule(N)
def unused_pod_claim(part: PodPart, _: Case) -> Iterator[Oddity]:
    """A claim of a pod that no container uses."""
    used = {used.name for _, container in part.containers() for used in container.resources.claims}
    for place, entry in _entries_of(part):
        if entry.name not in used:
            yield Oddity(
                (*place, "name"),
                f'no container uses claim "{entry.name}": its devices are allocated and '
                "prepared, but no container sees them, unless the driver cares for the whole pod",
                "name it in resources.claims of a container",
            )


@_pod_rule(W, Needs.CLAIMS)
def unknown_claim(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A pod that uses a claim which is not among the claims given."""
    claims = case.context.objects.claims
    for place, entry in _entries_of(part):
        name = entry.resource_claim_name
        if name and NamespacedName(part.namespace, name) not in claims:
            remedy = _elsewhere(name, part.namespace, tuple(claims), "claim")
            message = f"there is no ResourceClaim {part.namespace}/{name} among those given"
            yield Oddity((*place, "resourceClaimName"), message, remedy)


@_pod_rule(W, Needs.TEMPLATES)
def unknown_template(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A pod that uses a template which is not among the templates given."""
    templates = case.context.objects.templates
    for place, entry in _entries_of(part):
        name = entry.resource_claim_template_name
        if not name or NamespacedName(part.namespace, name) in templates or _is_made(part, entry):
            continue
        remedy = _elsewhere(name, part.namespace, tuple(templates), "template")
        message = f"there is no ResourceClaimTemplate {part.namespace}/{name} among those given"
        yield Oddity((*place, "resourceClaimTemplateName"), message, remedy)


def _elsewhere(name: str, namespace: str, known: tuple[NamespacedName, ...], what: str) -> str:
    """Return the remedy for a name that a namespace does not have."""
    others = sorted(key.namespace for key in known if key.name == name)
    if others:
        return f"namespace {others[0]} has one; a pod uses only those of its own namespace"
    here = (key.name for key in known if key.namespace == namespace)
    return suggestion(name, here, f"create the {what}, or give its file, too")


def _is_made(part: PodPart, entry: PodResourceClaim) -> bool:
    statuses = () if part.status is None else part.status.resource_claim_statuses or ()
    return any(status.name == entry.name for status in statuses)


@_pod_rule(W)
def unknown_request(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A container that names a request which its claim does not have."""
    requests = {entry.name: _requests(part, entry, case) for entry in part.spec.resource_claims}
    for place, container in part.containers():
        for i, used in enumerate(container.resources.claims):
            known = requests.get(used.name)
            if not used.request or known is None or used.request in known:
                continue
            names = ", ".join(known) or "none"
            yield Oddity(
                (*place, "resources", "claims", i, "request"),
                f'claim "{used.name}" has no request "{used.request}", its requests are: {names}; '
                f"container {container.name} gets no device",
                suggestion(used.request, known, "name a request of the claim, or none"),
            )


def _requests(part: PodPart, entry: PodResourceClaim, case: Case) -> tuple[str, ...] | None:
    """Return the requests of an entry's claim, None if the claim is unknown."""
    objects = case.context.objects
    claim_name = entry.resource_claim_name or ""
    template_name = entry.resource_claim_template_name or ""
    claim = objects.claims.get(NamespacedName(part.namespace, claim_name))
    template = objects.templates.get(NamespacedName(part.namespace, template_name))
    spec: ResourceClaimSpec | None = None
    if claim is not None:
        spec = claim.spec
    elif template is not None:
        spec = template.spec.spec
    return None if spec is None else tuple(request.name for request in spec.devices.requests or ())


def _entries_of(part: PodPart) -> Iterator[Entry]:
    for i, entry in enumerate(part.spec.resource_claims):
        yield (*part.place, "resourceClaims", i), entry


# --- shared claims ----------------------------------------------------------------------


@_pod_rule(N)
def template_twice(part: PodPart, _: Case) -> Iterator[Oddity]:
    """A pod with several claims from one template."""
    first: dict[str, str] = {}
    for place, entry in _entries_of(part):
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


@_pod_rule(N)
def shared_by_replicas(part: PodPart, _: Case) -> Iterator[Oddity]:
    """A claim by name that all pods of a controller share."""
    if part.pods == 1 or part.pods == 0:
        return
    number = f"all {part.pods:,} pods share" if part.pods else "the pods of all nodes share"
    for place, entry in _entries_of(part):
        if entry.resource_claim_name:
            yield Oddity(
                (*place, "resourceClaimName"),
                f"{number} the devices of claim {entry.resource_claim_name}, and run only where "
                "these are",
                "for devices of their own, use resourceClaimTemplateName",
            )


@_pod_rule(W)
def too_many_users(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A claim that more than 256 pods use."""
    objects = case.context.objects
    for place, entry in _entries_of(part):
        key = NamespacedName(part.namespace, entry.resource_claim_name or "")
        users = objects.users.get(key, ())
        if not users or users[0].metadata is not part.metadata:
            continue
        number = sum(objects.pods_of(user) for user in users if not _is_of_group(user, key, case))
        if number > RESERVATIONS_MAX:
            yield Oddity(
                (*place, "resourceClaimName"),
                f"{counted(number, 'pod')} use claim {key}, but at most {RESERVATIONS_MAX} may "
                "at a time: others stay pending",
                "use several claims, or a claim of the PodGroup",
            )


def _is_of_group(part: PodPart, key: NamespacedName, case: Case) -> bool:
    """Whether the claim is reserved for the pod's group, once for all its pods."""
    group = case.context.objects.groups.get(NamespacedName(part.namespace, part.group_name or ""))
    entries = () if group is None else group.spec.resource_claims
    return any(entry.resource_claim_name == key.name for entry in entries)


@_pod_rule(W, Needs.GROUPS)
def group_claim_mismatch(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A claim of a pod that is almost a claim of its group."""
    objects = case.context.objects
    group = objects.groups.get(NamespacedName(part.namespace, part.group_name or ""))
    if group is None:
        return
    for place, entry in _entries_of(part):
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
            elif same_name and not objects.context.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
                yield Oddity(
                    place,
                    f'claim "{entry.name}" is one of PodGroup {part.group_name}, but '
                    f"{Gate.DRA_WORKLOAD_RESOURCE_CLAIMS} is off",
                    f"switch on {Gate.DRA_WORKLOAD_RESOURCE_CLAIMS}",
                )


@_pod_rule(W)
def bypasses_scheduler(part: PodPart, case: Case) -> Iterator[Oddity]:
    """A pod with nodeName and claims that nobody will allocate."""
    if not part.spec.node_name:
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
    claim = case.context.objects.claims.get(
        NamespacedName(part.namespace, entry.resource_claim_name)
    )
    return claim is not None and claim.status.allocation is None
