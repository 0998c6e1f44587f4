"""What a runtime class adds to pods: overhead, a node selector, tolerations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.core import Pod, PodSpec, Toleration
from moorage.api.core.placement import NO_EXECUTE
from moorage.api.runtime_class import RuntimeClass, Scheduling
from moorage.claims.pod_claims import ClaimRejection

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

_COVERING: Final = ("", "Equal", "Exists")  # operators of tolerations that can cover others


def with_runtime(pod: Pod, runtime: RuntimeClass | None) -> Pod | ClaimRejection:
    """Return a pod with what its runtime class adds, or why they conflict."""
    spec = pod.spec
    overhead = None if runtime is None else runtime.overhead
    if overhead is not None:
        if spec.overhead and spec.overhead != overhead.pod_fixed:
            return ClaimRejection(_OTHER_OVERHEAD)
        spec = replace(spec, overhead=overhead.pod_fixed)
    if runtime is not None and runtime.scheduling is not None:
        scheduled = _scheduled(spec, runtime.scheduling)
        if isinstance(scheduled, ClaimRejection):
            return scheduled
        spec = scheduled
    return replace(pod, spec=spec)


def _scheduled(spec: PodSpec, scheduling: Scheduling) -> PodSpec | ClaimRejection:
    for key, value in scheduling.node_selector.items():
        own = spec.node_selector.get(key, value)
        if own != value:
            return ClaimRejection(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own}"
            )
    return replace(
        spec,
        node_selector={**spec.node_selector, **scheduling.node_selector},
        tolerations=_merged((*spec.tolerations, *scheduling.tolerations)),
    )


def _merged(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Return the tolerations that no other one covers; of equal ones the first."""
    later = _WidestTolerations()
    candidates = []
    for each in reversed(tolerations):
        if not later.has_wider(each):
            candidates.append(each)
        later.add(each)
    merged: list[Toleration] = []
    earlier = _WidestTolerations()
    for each in reversed(candidates):
        if not earlier.has_equal(each) and not earlier.has_wider(each):
            merged.append(each)
            earlier.add(each)
    return tuple(merged)


class _WidestTolerations:
    """The tolerations that can cover others, so that each is compared with a few.

    Those that differ in their seconds only cover the same, some of it for longer: the two that last
    longest are enough, as one of them may be equal to the one that is looked for.
    """

    def __init__(self) -> None:
        self._known: set[tuple[Any, ...]] = set()
        self._widest: dict[tuple[str, str, str | None], list[Toleration]] = {}

    def add(self, wide: Toleration) -> None:
        """Add a toleration."""
        if self.has_equal(wide):
            return
        self._known.add(_fields(wide))
        if wide.operator not in _COVERING:
            return
        value = None if wide.operator == "Exists" else wide.value
        kept = self._widest.setdefault((wide.key, wide.effect, value), [])
        kept.append(wide)
        kept.sort(key=_seconds, reverse=True)
        del kept[2:]

    def has_equal(self, toleration: Toleration) -> bool:
        """Return whether a toleration was added."""
        return _fields(toleration) in self._known

    def has_wider(self, narrow: Toleration) -> bool:
        """Return whether another one covers a toleration."""
        return any(
            _fields(wide) != _fields(narrow) and _covers(wide, narrow)
            for key in {narrow.key, ""}
            for effect in {narrow.effect, ""}
            for value in (None, narrow.value)
            for wide in self._widest.get((key, effect, value), ())
        )


def _fields(toleration: Toleration) -> tuple[Any, ...]:
    each = toleration
    return each.key, each.operator, each.value, each.effect, each.toleration_seconds


def _seconds(toleration: Toleration) -> float:
    if toleration.effect != NO_EXECUTE or toleration.toleration_seconds is None:
        return math.inf
    return toleration.toleration_seconds


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Return whether one toleration tolerates everything that another one does."""
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
