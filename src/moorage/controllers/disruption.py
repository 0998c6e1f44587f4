"""Disruption: how many disruptions each PodDisruptionBudget allows now.

The expected number of pods is that of their controllers if minAvailable is a percentage or
maxUnavailable is set; otherwise it is the number of existing pods. A pod whose eviction was granted
counts as gone until its deletion is observed, for at most two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from moorage.api.apps import Deployment, ReplicaSet, StatefulSet
from moorage.api.core.pod import FAILED, SUCCEEDED, Pod
from moorage.api.labels import NOTHING, Selector
from moorage.api.meta import Condition
from moorage.api.policy import (
    DISRUPTION_ALLOWED,
    INSUFFICIENT_PODS,
    SUFFICIENT_PODS,
    SYNC_FAILED,
    PodDisruptionBudget,
    PodDisruptionBudgetStatus,
)
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import RecordEvent, RequeueAfter, Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.controller_ref_manager import index_by_namespace
from moorage.controllers.deployment_rollout import part_of
from moorage.controllers.pod_control import is_ready, with_status
from moorage.controllers.stored_selectors import stored_selector

DELETION_S: Final = 120.0  # how long an eviction counts without a deletion

_SCALED: dict[tuple[str, str], type[Any]] = {
    ("ReplicaSet", "apps"): ReplicaSet,
    ("StatefulSet", "apps"): StatefulSet,
    ("Deployment", "apps"): Deployment,
}


class DisruptionController(Controller):
    """Updates the status of PodDisruptionBudgets."""

    name: ClassVar[str] = "disruption-controller"
    kinds = (PodDisruptionBudget, Pod, ReplicaSet, StatefulSet, Deployment)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_namespace(objects, PodDisruptionBudget, Pod)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the budgets that a change affects: those that select a pod, or did."""
        value = change.value
        if isinstance(value, PodDisruptionBudget):
            return (object_key(value),)
        budgets = objects.by_index(PodDisruptionBudget, "namespace", value.metadata.namespace)
        if not budgets:
            return ()
        if not isinstance(value, Pod):
            is_same = change.old and change.new and _replicas(change.old) == _replicas(change.new)
            return () if is_same else sorted(map(object_key, budgets))
        states = change.states
        return sorted(
            object_key(each)
            for each in budgets
            if any(_selector(each).matches(pod.metadata.labels) for pod in states)
        )

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the update of a budget's status."""
        budget = objects.get(PodDisruptionBudget, *key)
        if budget is None:
            return
        pods = objects.by_index(Pod, "namespace", key[0])
        chosen = selected_by(budget, pods)
        if not chosen:
            yield RecordEvent(budget, "NoPods", "No matching pods found")
        status = status_of(objects, budget, chosen, now)
        if isinstance(status, str):
            yield RecordEvent(budget, "CalculateExpectedPodCountFailed", status, is_warning=True)
            message = f"Failed to calculate the number of expected pods: {status}"
            status = _failed(budget, status, now)
            yield RecordEvent(budget, "NoControllers", message, is_warning=True)
        if (changed := with_status(budget, status)) is not None:
            yield Update(changed, "status")
        if status.disrupted_pods:
            until = min(at.after(DELETION_S).instant for at in status.disrupted_pods.values())
            yield RequeueAfter(key, max(1.0, (until - now.instant).total_seconds()))


def _replicas(value: object) -> object:
    return getattr(getattr(value, "spec", None), "replicas", None)


def _selector(budget: PodDisruptionBudget) -> Selector:
    """Return which pods a budget selects: none if its selector cannot be read."""
    found = stored_selector(budget.spec.selector)
    return found if isinstance(found, Selector) else NOTHING


def selected_by(budget: PodDisruptionBudget, pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that a budget selects among those of its namespace."""
    selector = _selector(budget)
    return sorted((pod for pod in pods if selector.matches(pod.metadata.labels)), key=object_key)


def status_of(
    objects: Indexer, budget: PodDisruptionBudget, pods: list[Pod], now: Timestamp
) -> PodDisruptionBudgetStatus | str:
    """Return the status of a budget, or why it cannot be computed."""
    counts = _expected(objects, budget, pods)
    if isinstance(counts, str):
        return counts
    expected, desired = counts
    disrupted = {
        pod.metadata.name: at
        for pod in pods
        if (at := budget.status.disrupted_pods.get(pod.metadata.name)) is not None
        and pod.metadata.deletion_timestamp is None
        and now < at.after(DELETION_S)
    }
    healthy = sum(
        is_ready(pod)
        and pod.metadata.deletion_timestamp is None
        and pod.metadata.name not in disrupted
        and pod.status.phase not in (SUCCEEDED, FAILED)
        for pod in pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = replace(
        budget.status,
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
    )
    reason = SUFFICIENT_PODS if allowed > 0 else INSUFFICIENT_PODS
    return _with_condition(status, budget, reason, "", now)


def _expected(
    objects: Indexer, budget: PodDisruptionBudget, pods: list[Pod]
) -> tuple[int, int] | str:
    """Return the number of expected pods, and how many of them must be healthy."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _wanted(objects, pods)
        if isinstance(expected, str):
            return expected
        missing = part_of(spec.max_unavailable, expected, rounds_up=True)
        return expected, max(0, expected - missing)
    if isinstance(spec.min_available, str):
        expected = _wanted(objects, pods)
        if isinstance(expected, str):
            return expected
        return expected, part_of(spec.min_available, expected, rounds_up=True)
    least = spec.min_available if isinstance(spec.min_available, int) else 0
    return len(pods), least


def _wanted(objects: Indexer, pods: list[Pod]) -> int | str:
    """Return the total replicas of the pods' controllers; a pod without one is an error."""
    scales: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None:
            continue
        group = owner.api_version.rpartition("/")[0]
        struct = _SCALED.get((owner.kind, group))
        found = None if struct is None else objects.get(struct, pod.metadata.namespace, owner.name)
        if struct is ReplicaSet and found is not None:
            above = controller_of(found.metadata)
            if above is not None and above.kind == "Deployment":
                found = objects.get(Deployment, pod.metadata.namespace, above.name) or found
        if found is None:
            return f'found no controllers for pod "{pod.metadata.name}"'
        scales[found.metadata.uid] = 1 if found.spec.replicas is None else found.spec.replicas
    return sum(scales.values())


def _failed(budget: PodDisruptionBudget, why: str, now: Timestamp) -> PodDisruptionBudgetStatus:
    status = replace(
        budget.status, disruptions_allowed=0, observed_generation=budget.metadata.generation
    )
    return _with_condition(status, budget, SYNC_FAILED, why, now)


def _with_condition(
    status: PodDisruptionBudgetStatus,
    budget: PodDisruptionBudget,
    reason: str,
    message: str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus:
    state = "True" if reason == SUFFICIENT_PODS else "False"
    known = next((c for c in status.conditions if c.type == DISRUPTION_ALLOWED), None)
    since = now.truncated()
    if known is not None and known.status == state and known.last_transition_time is not None:
        since = known.last_transition_time
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status=state,
        observed_generation=budget.metadata.generation,
        last_transition_time=since,
        reason=reason,
        message=message,
    )
    others = tuple(c for c in status.conditions if c.type != DISRUPTION_ALLOWED)
    return replace(status, conditions=(*others, condition))
