"""What a namespace that is to be deleted says of its content, in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.meta import Condition
from mooring.api.timestamp import Timestamp

DISCOVERY = "NamespaceDeletionDiscoveryFailure"
PARSING = "NamespaceDeletionGroupVersionParsingFailure"
DELETION = "NamespaceDeletionContentFailure"
CONTENT = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"

# type: reason and message while nothing is wrong
_FINE = {
    DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    DELETION: (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    CONTENT: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class Remains(NamedTuple):
    """What is left in a namespace."""

    resources: dict[str, int] = {}  # noqa: RUF012 - how many, by `plural.group`; never changed
    finalizers: dict[str, int] = {}  # noqa: RUF012 - on how many objects, by name
    failures: tuple[str, ...] = ()  # why something could not be deleted
    undiscovered: tuple[str, ...] = ()  # `group/version: why` of what could not be looked at

    @property
    def is_empty(self) -> bool:
        """Whether the namespace may go."""
        return not (self.resources or self.failures or self.undiscovered)


def conditions_of(
    remains: Remains, old: tuple[Condition, ...], now: Timestamp
) -> tuple[Condition, ...]:
    """Return the conditions of a namespace with these remains; unchanged ones keep their time."""
    before = {condition.type: condition for condition in old}
    wrong = dict(_wrong(remains))
    others = tuple(condition for condition in old if condition.type not in _FINE)
    found = []
    for kind, fine in _FINE.items():
        status = "True" if kind in wrong else "False"
        reason, message = wrong.get(kind, fine)
        last = before.get(kind)
        new = Condition(
            type=kind,
            status=status,
            last_transition_time=now.truncated(),
            reason=reason,
            message=message,
        )
        if last is not None and last.status == status:
            new = replace(new, last_transition_time=last.last_transition_time)
        found.append(new)
    return (*others, *found)


def _wrong(remains: Remains) -> Iterable[tuple[str, tuple[str, str]]]:
    if remains.undiscovered:
        told = ", ".join(sorted(remains.undiscovered))
        message = (
            f"Discovery failed for some groups, {len(remains.undiscovered)} failing: "
            f"unable to retrieve the complete list of server APIs: {told}"
        )
        yield DISCOVERY, ("DiscoveryFailed", message)
    if remains.failures:
        told = ", ".join(sorted(remains.failures))
        count = len(remains.failures)
        message = f"Failed to delete all resource types, {count} remaining: {told}"
        yield DELETION, ("ContentDeletionFailed", message)
    if remains.resources:
        told = ", ".join(
            f"{name} has {count} resource instances"
            for name, count in sorted(remains.resources.items())
        )
        yield CONTENT, ("SomeResourcesRemain", f"Some resources are remaining: {told}")
    if remains.finalizers:
        told = ", ".join(
            f"{name} in {count} resource instances"
            for name, count in sorted(remains.finalizers.items())
        )
        message = f"Some content in the namespace has finalizers remaining: {told}"
        yield FINALIZERS, ("SomeFinalizersRemain", message)
