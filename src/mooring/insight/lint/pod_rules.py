"""Rules of lint about pods, and what makes pods, besides their claims: resources and groups."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.codec import Place
from mooring.api.core import Pod
from mooring.api.fieldpath import Key as MapKey
from mooring.api.gates import Gate
from mooring.api.resource.v1 import DEVICE_CLASS_RESOURCE_PREFIX
from mooring.claims.classindex import is_device_resource
from mooring.insight.lint.cases import GROUPS, PODS, Case, N, Needs, Oddity, Rule, W
from mooring.insight.lint.context import NamespacedName, key_of
from mooring.insight.lint.subjects import PodPart, pod_part_of
from mooring.insight.messages import counted, nearest
from mooring.scheduler.unmodelled import unmodelled as not_modelled


def part_of(case: Case) -> PodPart | None:
    """Return the pod at hand, None if it is over or the controller that made it speaks for it."""
    part = pod_part_of(case.subject.value)
    if part is None or part.is_over or case.world.around.is_made_by_given(part.metadata):
        return None
    return part


# --- extended resources -------------------------------------------------------------------


def unknown_extended_resource(case: Case) -> Iterator[Oddity]:
    """Give the extended resources that nothing can serve."""
    for place, name in _extended_resources(case):
        if case.world.class_index.class_for(name) is not None:
            if not case.world.around.context.enabled(Gate.DRA_EXTENDED_RESOURCE):
                message = f"a class serves {name}, but {Gate.DRA_EXTENDED_RESOURCE} is off"
                yield Oddity(place, message, f"switch on {Gate.DRA_EXTENDED_RESOURCE}")
        elif name.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
            class_name = name.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX)
            near = nearest(class_name, case.world.classes)
            yield Oddity(
                place,
                f'there is no class "{class_name}" among those given',
                f'did you mean "{near}"?' if near else "create the class, or give its file, too",
            )
        elif case.world.around.nodes and not case.world.around.node_resources[name]:
            yield Oddity(
                place,
                f"neither a class nor a node given has {name}",
                _near_resource(name, case) or "set spec.extendedResourceName of a DeviceClass",
            )


def _near_resource(name: str, case: Case) -> str | None:
    named = {class_.spec.extended_resource_name for class_ in case.world.classes.values()}
    near = nearest(name, (*filter(None, named), *case.world.around.node_resources))
    return None if near is None else f'did you mean "{near}"?'


def extended_resource_twice(case: Case) -> Iterator[Oddity]:
    """Give the extended resources that a class and device plugins of nodes provide."""
    for place, name in _extended_resources(case):
        class_ = case.world.class_index.class_for(name)
        nodes = case.world.around.node_resources[name]
        if class_ is not None and nodes:
            yield Oddity(
                place,
                f"class {class_.metadata.name} stands for {name}, but {counted(nodes, 'node')} "
                "have it from a device plugin: there no claim is made",
                "nothing to do while a cluster moves from device plugins to DRA",
            )


def _extended_resources(case: Case) -> Iterator[tuple[Place, str]]:
    """Give the extended resources that containers ask for, each where it is written."""
    part = part_of(case)
    if part is None:
        return
    for place, container in part.containers():
        seen: set[str] = set()
        resources = container.resources
        for field, amounts in (("requests", resources.requests), ("limits", resources.limits)):
            for name, quantity in amounts.items():
                if name not in seen and is_device_resource(name) and not quantity.is_zero:
                    seen.add(name)
                    yield (*place, "resources", field, MapKey(name)), name


# --- groups -------------------------------------------------------------------------------


def unknown_group(case: Case) -> Iterator[Oddity]:
    """Give the groups that are not there."""
    part = part_of(case)
    if part is None or not part.group_name:
        return
    groups = case.world.around.groups
    key = NamespacedName(part.namespace, part.group_name)
    if key not in groups:
        near = nearest(key.name, (known.name for known in groups if known[0] == key.namespace))
        yield Oddity(
            (*part.place, "schedulingGroup", "podGroupName"),
            f"there is no PodGroup {key} among those given: the pod stays pending without it",
            f'did you mean "{near}"?' if near else "create the group, or give its file, too",
        )


def gang_too_small(case: Case) -> Iterator[Oddity]:
    """Give the gangs that need more pods than there are."""
    group = case.subject.value
    gang = group.spec.scheduling_policy.gang
    pods = case.world.around.members[key_of(group.metadata)]
    if gang is not None and 0 < pods < gang.min_count:
        yield Oddity(
            ("spec", "schedulingPolicy", "gang", "minCount"),
            f"{gang.min_count} pods must be there before any is scheduled, but only "
            f"{counted(pods, 'pod')} of the group {'is' if pods == 1 else 'are'} given",
            "lower minCount, or create more pods",
        )


# --- what Mooring does not know -----------------------------------------------------------


def unmodelled(case: Case) -> Iterator[Oddity]:
    """Give what Mooring's scheduler does not know how to place."""
    part = part_of(case)
    if part is None:
        return
    pod = Pod(metadata=part.metadata, spec=part.spec)
    is_admitted = part.status is not None and bool(part.metadata.uid)
    refusal = not_modelled(pod, is_admitted=is_admitted)
    for text in () if refusal is None else refusal.texts:
        yield Oddity(
            part.place,
            f"Mooring cannot plan the pod: {text}",
            "nothing to do: a cluster can schedule it",
        )


RULES = (
    Rule(
        "unknown-extended-resource",
        W,
        Needs.CLASSES,
        "an extended resource that no class, and no node given, provides",
        unknown_extended_resource,
        PODS,
    ),
    Rule(
        "extended-resource-twice",
        N,
        Needs.CLASSES,
        "an extended resource that both a class and nodes provide",
        extended_resource_twice,
        PODS,
    ),
    Rule(
        "unknown-group",
        W,
        Needs.GROUPS,
        "a pod in a group that is not among the groups given",
        unknown_group,
        PODS,
    ),
    Rule(
        "gang-too-small",
        W,
        Needs.NOTHING,
        "a gang that needs more pods than are given",
        gang_too_small,
        GROUPS,
    ),
    Rule(
        "unmodelled",
        N,
        Needs.NOTHING,
        "a pod that Mooring's scheduler does not know how to place",
        unmodelled,
        PODS,
    ),
)
