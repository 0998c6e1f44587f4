"""Priorities by name: what a cluster writes into pods and groups when they are created."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mooring.api.scheduling import PriorityClass
from mooring.api.scheduling.v1 import SYSTEM_CRITICAL_PRIORITY
from mooring.api.scheduling.v1beta1 import PREEMPT_LOWER_PRIORITY
from mooring.insight.concerns import Concern, listed, titled
from mooring.insight.snapshot.snapshot import Snapshot

BUILT_IN: Final = {
    "system-cluster-critical": SYSTEM_CRITICAL_PRIORITY,
    "system-node-critical": SYSTEM_CRITICAL_PRIORITY + 1000,
}


class Priority(NamedTuple):
    """What a priority class stands for."""

    class_name: str
    value: int
    preemption_policy: str


class Priorities:
    """The priority classes of a cluster."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._by_name = {
            name: Priority(name, value, PREEMPT_LOWER_PRIORITY) for name, value in BUILT_IN.items()
        }
        chosen: list[Priority] = []
        for each in classes:
            policy = each.preemption_policy or PREEMPT_LOWER_PRIORITY
            found = Priority(each.metadata.name, each.value, policy)
            self._by_name[found.class_name] = found
            if each.global_default:
                chosen.append(found)
        # Of several defaults the lowest counts: nobody gets more than was meant.
        lowest = min(chosen, key=lambda found: found.value, default=None)
        self._default = lowest or Priority("", 0, PREEMPT_LOWER_PRIORITY)

    def find(self, class_name: str) -> Priority | None:
        """Return the priority of a class, of the default one if none is named."""
        return self._by_name.get(class_name) if class_name else self._default


def with_priorities(snapshot: Snapshot) -> tuple[Snapshot, list[Concern]]:
    """Return the snapshot with the priority of every pod and group that has none yet."""
    priorities = Priorities(snapshot.priorities)
    missing: dict[str, list[str]] = {}
    shared: dict[int, tuple[Any, Any]] = {}  # by id of the old spec, which is kept alive with it

    def prioritised(value: Any) -> Any:
        spec = value.spec
        if spec.priority is not None:
            return value
        if (priority := priorities.find(spec.priority_class_name)) is None:
            missing.setdefault(spec.priority_class_name, []).append(titled(value))
            return value
        # Pods of one template share their spec; so they do afterwards.
        if id(spec) not in shared:
            shared[id(spec)] = (spec, _with(spec, priority, is_pod=value.kind == "Pod"))
        return replace(value, spec=shared[id(spec)][1])

    changed = replace(
        snapshot,
        pods=tuple(map(prioritised, snapshot.pods)),
        groups=tuple(map(prioritised, snapshot.groups)),
    )
    return changed, [
        Concern(
            "missing-priority-class",
            f"there is no PriorityClass {name}, but {listed(users)} asks for it",
            "a cluster would not take such a pod; here it goes with priority 0",
        )
        for name, users in sorted(missing.items())
    ]


def _with(spec: Any, priority: Priority, *, is_pod: bool) -> Any:
    spec = replace(spec, priority=priority.value, priority_class_name=priority.class_name)
    if is_pod and spec.preemption_policy is None:
        spec = replace(spec, preemption_policy=priority.preemption_policy)
    return spec
