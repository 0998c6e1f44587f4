"""What a runtime class adds to a pod: its overhead, its nodes, and what they must tolerate."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mooring.api.core import Pod, PodSpec, Toleration
from mooring.api.core.placement import NO_EXECUTE
from mooring.api.runtimeclass import RuntimeClass, Scheduling
from mooring.claims.refusals import Refused
from mooring.validation.errors import quoted

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def unknown_runtime(name: str) -> str:
    """Return why a pod of a class that does not exist is refused."""
    return f"pod rejected: RuntimeClass {quoted(name)} not found"


def with_runtime(pod: Pod, runtime: RuntimeClass | None) -> Pod | Refused:
    """Return a pod with what its runtime class adds, or why the two do not go together."""
    spec = pod.spec
    overhead = None if runtime is None else runtime.overhead
    if overhead is not None:
        if spec.overhead and spec.overhead != overhead.pod_fixed:
            return Refused(_OTHER_OVERHEAD)
        spec = replace(spec, overhead=overhead.pod_fixed)
    if runtime is not None and runtime.scheduling is not None:
        scheduled = _scheduled(spec, runtime.scheduling)
        if isinstance(scheduled, Refused):
            return scheduled
        spec = scheduled
    return replace(pod, spec=spec)


def unfounded_overhead(pod: Pod, runtime: RuntimeClass | None) -> str | None:
    """Return why a pod may not have an overhead that no runtime class gave it."""
    if not pod.spec.overhead or (runtime is not None and runtime.overhead is not None):
        return None
    return _NO_OVERHEAD


def _scheduled(spec: PodSpec, scheduling: Scheduling) -> PodSpec | Refused:
    for key, value in scheduling.node_selector.items():
        own = spec.node_selector.get(key, value)
        if own != value:
            return Refused(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own}"
            )
    return replace(
        spec,
        node_selector={**spec.node_selector, **scheduling.node_selector},
        tolerations=_merged((*spec.tolerations, *scheduling.tolerations)),
    )


def _merged(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Return the tolerations without those that another one covers; of equals the first stays."""
    merged: list[Toleration] = []
    for position, toleration in enumerate(tolerations):
        later = (other for other in tolerations[position + 1 :] if other != toleration)
        if not any(_covers(other, toleration) for other in (*merged, *later)):
            merged.append(toleration)
    return tuple(merged)


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Tell whether one toleration puts up with all that another one does."""
    if wide == narrow:
        return True
    matches_all = not wide.key and wide.operator == "Exists"
    if wide.key != narrow.key and not matches_all:
        return False
    if wide.effect not in ("", narrow.effect) or not _lasts_longer(wide, narrow):
        return False
    if wide.operator in ("", "Equal"):
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"


def _lasts_longer(wide: Toleration, narrow: Toleration) -> bool:
    if wide.effect != NO_EXECUTE or wide.toleration_seconds is None:
        return True
    seconds = narrow.toleration_seconds
    return seconds is not None and seconds <= wide.toleration_seconds
