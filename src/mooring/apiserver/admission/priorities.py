"""Priorities: of the class that an object names, else of the default class, else none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.api.gates import Gate, Gates
from mooring.api.meta import ObjectMeta
from mooring.api.scheduling import CompositePodGroup, PodGroup, PriorityClass
from mooring.claims.refusals import Refused

PREEMPT = "PreemptLowerPriority"

# They are there before anybody asks for them: without them nothing that a cluster needs would be
# more important than what users run.
SYSTEM_CLASSES = (
    PriorityClass(
        metadata=ObjectMeta(name="system-node-critical"),
        value=2_000_001_000,
        description=(
            "Used for system critical pods that must not be moved from their current node."
        ),
        preemption_policy=PREEMPT,
    ),
    PriorityClass(
        metadata=ObjectMeta(name="system-cluster-critical"),
        value=2_000_000_000,
        description=(
            "Used for system critical pods that must run in the cluster, but can be moved to "
            "another node if necessary."
        ),
        preemption_policy=PREEMPT,
    ),
)


_POD = (
    "the integer value of priority ({given}) must not be provided in pod spec; priority admission "
    "controller computed {computed} from the given PriorityClass name"
)
_GROUP = (
    "priority set in the {noun} ({given}) must match the priority computed ({computed}) based on "
    "the priority class set in the spec"
)
_POLICY = (
    "the string value of PreemptionPolicy ({given}) must not be provided in {noun} spec; priority "
    "admission controller computed {computed} from the given PriorityClass name"
)


def takes_priority(value: Any, gates: Gates) -> bool:
    """Return whether an object gets a priority from a class."""
    match value:
        case Pod():
            return True
        case PodGroup():
            return gates.enabled(Gate.GENERIC_WORKLOAD)
        case CompositePodGroup():
            return gates.enabled(Gate.COMPOSITE_POD_GROUP)
    return False


def default_class(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """Return the class of objects that name none: of several, by mistake, the lowest."""
    return min(
        (each for each in classes if each.global_default),
        key=lambda each: (each.value, each.metadata.name),
        default=None,
    )


def prioritized(value: Any, found: PriorityClass | None, gates: Gates) -> Any | Refused:
    """Return an object with the priority of its class, or why it may not have what it says."""
    spec = value.spec
    name, priority, policy = "", 0, PREEMPT
    if found is not None:
        name, priority = found.metadata.name, found.value
        policy = found.preemption_policy or PREEMPT
    noun = "pod" if isinstance(value, Pod) else _group_noun(value)
    if spec.priority is not None and spec.priority != priority:
        words = _POD if isinstance(value, Pod) else _GROUP
        return Refused(words.format(given=spec.priority, computed=priority, noun=noun))
    spec = replace(spec, priority=priority, priority_class_name=name)
    if not isinstance(value, Pod) and not gates.enabled(Gate.POD_GROUP_PREEMPTION_POLICY):
        return replace(value, spec=spec)
    if spec.preemption_policy is not None and spec.preemption_policy != policy:
        given = spec.preemption_policy
        return Refused(_POLICY.format(given=given, computed=policy, noun=noun))
    return replace(value, spec=replace(spec, preemption_policy=policy))


def _group_noun(value: Any) -> str:
    return "pod group" if isinstance(value, PodGroup) else "composite pod group"


def unknown_class(name: str) -> str:
    """Return why an object that names a class is refused if there is no such class."""
    return f"no PriorityClass with name {name} was found"


def second_default(new: PriorityClass, classes: Iterable[PriorityClass]) -> str | None:
    """Return why a class may not be the default: another one is."""
    known = default_class(each for each in classes if each.metadata.name != new.metadata.name)
    if not new.global_default or known is None:
        return None
    name = known.metadata.name
    return f"PriorityClass {name} is already marked as default. Only one default can exist"
