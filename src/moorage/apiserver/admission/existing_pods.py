"""Warnings about the pods of a namespace that a new level would refuse, had they to be made again.

They stay. As in Kubernetes, a bounded number is checked in a bounded time: first pods without a
controller and one pod of each controller, as the pods of one are alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from moorage.api.codec import to_tree
from moorage.api.core import Pod
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.registry import Registry
from moorage.kit.go_quote import go_quote
from moorage.validation.pod_security import EvaluatedPod, LevelVersion, PodEvaluator

CHECKED_PODS_MAX: Final = 3000
CHECKED_S_MAX: Final = 1.0
PAGE: Final = 500  # entries that are read at once
SLICE: Final = 25  # pods after which other requests get their turn


class ExistingPods:
    """Finds pods of a namespace that violate a level."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        evaluator: PodEvaluator,
        exempt_runtime_classes: frozenset[str],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._pods = resources.of("", "pods")
        self._evaluator = evaluator
        self._exempt_runtime_classes = exempt_runtime_classes
        self._clock = clock

    async def warnings(self, namespace: str, enforce: LevelVersion) -> list[str]:
        """Return warnings about pods of a namespace that a new level would refuse."""
        deadline = self._clock() + CHECKED_S_MAX
        pods = _PrioritizedPods()
        async for pod in self._listed(namespace, pods, deadline):
            if pod.spec.runtime_class_name not in self._exempt_runtime_classes:
                pods.add(pod)
        first_names: dict[str, tuple[str, int]] = {}  # by reasons: a pod, and how many there are
        checked = 0
        for pod in pods.chosen():
            if found := self._evaluator.evaluate(enforce, EvaluatedPod(to_tree(pod))):
                name, count = first_names.get(found.reasons, (pod.metadata.name, 0))
                first_names[found.reasons] = (min(name, pod.metadata.name), count + 1)
            checked += 1
            if self._clock() >= deadline:
                break
            if checked % SLICE == 0:
                await asyncio.sleep(0)
        return _existing_warnings(namespace, enforce, first_names, checked, pods.total)

    async def _listed(
        self, namespace: str, pods: _PrioritizedPods, deadline: float
    ) -> AsyncIterator[Pod]:
        """Yield the pods of a namespace while there is time; count those after it."""
        prefix, after = self._pods.below(namespace), ""
        at: int | None = None
        while True:
            page = await self._registry.store.list(prefix, limit=PAGE, after=after, at=at)
            at = page.revision
            for number, entry in enumerate(page.entries):
                if self._clock() >= deadline:
                    pods.total += len(page.entries) - number + page.remaining
                    return
                if number % SLICE == 0:
                    await asyncio.sleep(0)
                pod = self._registry.find_readable(self._pods, entry)
                if pod is not None:
                    yield pod
            if not page.remaining:
                return
            after = page.entries[-1].key


class _PrioritizedPods:
    """Pods of which a bounded number is checked; first those of different controllers."""

    def __init__(self) -> None:
        self.total = 0
        self._first: list[Pod] = []
        self._others: list[Pod] = []
        self._controllers: set[str] = set()

    def add(self, pod: Pod) -> None:
        """Add a pod."""
        self.total += 1
        owners = (owner.uid for owner in pod.metadata.owner_references if owner.controller)
        controller = next(owners, None)
        is_first = controller is None or controller not in self._controllers
        if controller is not None:
            self._controllers.add(controller)
        chosen = self._first if is_first else self._others
        if len(chosen) < CHECKED_PODS_MAX:
            chosen.append(pod)

    def chosen(self) -> list[Pod]:
        """Return the pods to check."""
        return [*self._first, *self._others][:CHECKED_PODS_MAX]


def _existing_warnings(
    namespace: str,
    enforce: LevelVersion,
    first_names: Mapping[str, tuple[str, int]],
    checked: int,
    total: int,
) -> list[str]:
    warnings = []
    if checked < total:
        warnings.append(
            f"new PodSecurity enforce level only checked against the first {checked} of {total} "
            "existing pods"
        )
    if first_names:
        warnings.append(
            f"existing pods in namespace {go_quote(namespace)} violate the new PodSecurity "
            f'enforce level "{enforce}"'
        )
    return warnings + sorted(
        f"{name}{_others(count - 1)}: {reasons}" for reasons, (name, count) in first_names.items()
    )


def _others(count: int) -> str:
    if not count:
        return ""
    return f" (and {count} other pod{'' if count == 1 else 's'})"
