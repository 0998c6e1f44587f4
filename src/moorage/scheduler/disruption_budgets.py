"""PodDisruptionBudgets in preemption: victims whose budget would be violated are the last choice.

A budget says in its status how many pods may still be disrupted. Victims use it up from the most
important on; each one after that violates it. A victim of several pods violates budgets if one of
its pods does. Preemption does not stop at a budget: it only prefers other victims and other nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from moorage.api.labels import Selector, SelectorFault, read_selector
from moorage.api.policy import PodDisruptionBudget
from moorage.scheduler.pod_signature import PodInfo

BudgetKey = tuple[str, str]  # namespace, name


class Pods(Protocol):
    """Pods that leave together."""

    @property
    def pods(self) -> Iterable[PodInfo]:
        """The pods."""


V = TypeVar("V", bound=Pods)


class DisruptionBudgets:
    """The budgets of a cluster, by namespace."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, tuple[PodDisruptionBudget, Selector]]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Add a budget, or its newer version; one without a selector selects nothing."""
        self.remove(budget)
        selector = read_selector(budget.spec.selector)
        if not isinstance(selector, SelectorFault) and not selector.is_empty:
            metadata = budget.metadata
            self._budgets.setdefault(metadata.namespace, {})[metadata.name] = budget, selector

    def remove(self, budget: PodDisruptionBudget) -> None:
        """Remove a budget."""
        metadata = budget.metadata
        budgets = self._budgets.get(metadata.namespace)
        if budgets is not None:
            budgets.pop(metadata.name, None)
            if not budgets:
                del self._budgets[metadata.namespace]

    def split(self, victims: Sequence[V]) -> tuple[list[tuple[V, int]], list[V]]:
        """Return the victims that violate budgets, with the number of pods that do, and the others.

        Victims come with the most important first, which use up budgets before the others.
        """
        if not self._budgets:
            return [], list(victims)
        left: dict[BudgetKey, int] = {}
        violating: list[tuple[V, int]] = []
        others: list[V] = []
        for victim in victims:
            count = sum([self._is_violating(pod, left) for pod in victim.pods])
            if count:
                violating.append((victim, count))
            else:
                others.append(victim)
        return violating, others

    def _is_violating(self, pod: PodInfo, left: dict[BudgetKey, int]) -> bool:
        """Take a pod from its budgets, up to the first that has nothing left."""
        namespace, labels = pod.signature.namespace, pod.signature.labels
        for name, (budget, selector) in self._budgets.get(namespace, {}).items():
            status = budget.status
            if not labels or pod.name in status.disrupted_pods or not selector.matches(labels):
                continue
            key = namespace, name
            left[key] = left.get(key, status.disruptions_allowed) - 1
            if left[key] < 0:
                return True
        return False
