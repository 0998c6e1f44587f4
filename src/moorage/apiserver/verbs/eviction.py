"""pods/eviction: deletes a pod if its PodDisruptionBudget allows that now.

An eviction takes one of the disruptions that a budget's status allows, and writes the pod's name
there, before it deletes the pod. The disruption controller counts again later. A pod that does not
run, or that is not ready while enough others are, goes without asking.
"""

from __future__ import annotations

from http import HTTPStatus

from msgspec.structs import replace

from moorage.api.core.pod import DISRUPTION_TARGET, FAILED, PENDING, SUCCEEDED, Pod, PodCondition
from moorage.api.labels import Selector, read_selector
from moorage.api.meta import Condition
from moorage.api.policy import (
    ALWAYS_ALLOW,
    DISRUPTION_ALLOWED,
    INSUFFICIENT_PODS,
    SYNC_FAILED,
    PodDisruptionBudget,
    PodDisruptionBudgetStatus,
)
from moorage.api.timestamp import Timestamp
from moorage.apiserver.http.status import (
    About,
    StatusCause,
    StatusDetails,
    StatusError,
    failure,
    forbidden,
)
from moorage.apiserver.server_context import ServerContext

DISRUPTED_PODS_MAX = 2000
RETRY_AFTER_S = 10

_BUDGETS = ("policy", "poddisruptionbudgets")
_BUDGET = About("poddisruptionbudget", "PodDisruptionBudget", "policy")
_CAUSE = "DisruptionBudget"
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


async def charge_budget(server: ServerContext, pod: Pod, *, is_dry_run: bool) -> None:
    """Take a disruption from the budget of a pod, if it has one; raise 429 if none is left."""
    phases = (SUCCEEDED, FAILED, PENDING)
    if pod.status.phase in phases or pod.metadata.deletion_timestamp is not None:
        return
    budgets = await _budgets_of(server, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        raise failure(HTTPStatus.INTERNAL_SERVER_ERROR, "", _SEVERAL)
    budget = budgets[0]
    if not _is_ready(pod) and _may_go_unready(budget):
        return
    if is_dry_run:
        _charged(budget, pod, server)
        return
    metadata = budget.metadata

    async def charged(current: PodDisruptionBudget) -> PodDisruptionBudget:
        return _charged(current, pod, server)

    resource = server.resources.of(*_BUDGETS)
    await server.registry.change(resource, metadata.namespace, metadata.name, charged)


async def mark_evicted(server: ServerContext, pod: Pod) -> None:
    """Write the condition that says why a pod goes."""
    condition = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        last_transition_time=server.now(),
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )

    async def marked(current: Pod) -> Pod:
        known = (c for c in current.status.conditions if c.type != DISRUPTION_TARGET)
        status = replace(current.status, conditions=(*known, condition))
        return replace(current, status=status)

    metadata = pod.metadata
    resource = server.resources.of("", "pods")
    await server.registry.change(resource, metadata.namespace, metadata.name, marked)


async def _budgets_of(server: ServerContext, pod: Pod) -> list[PodDisruptionBudget]:
    resource = server.resources.of(*_BUDGETS)
    page = await server.registry.store.list(resource.below(pod.metadata.namespace))
    found = []
    for budget in server.registry.readable(resource, page.entries).values:
        selector = read_selector(budget.spec.selector)
        if isinstance(selector, Selector) and selector.matches(pod.metadata.labels):
            found.append(budget)
    return found


def _is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def _may_go_unready(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
        return True
    status = budget.status
    return status.current_healthy >= status.desired_healthy > 0


def _charged(budget: PodDisruptionBudget, pod: Pod, server: ServerContext) -> PodDisruptionBudget:
    """Return a budget with one disruption less, or raise why it allows none."""
    name, status = budget.metadata.name, budget.status
    if status.observed_generation < budget.metadata.generation:
        why = f"The disruption budget {name} is still being processed by the server."
        raise _refused(why, RETRY_AFTER_S)
    doesnt = f"The disruption budget {name} does not allow evicting pods currently"
    if status.disruptions_allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise forbidden(_BUDGET, name, why, (_cause(f"{doesnt}: {why}"),))
    if len(status.disrupted_pods) > DISRUPTED_PODS_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        cause = f"{doesnt}: too many pending evictions not confirmed by PDB controller"
        raise forbidden(_BUDGET, name, why, (_cause(cause),))
    if status.disruptions_allowed == 0:
        raise _refused(_why_not(name, status, doesnt), 0)
    allowed = status.disruptions_allowed - 1
    conditions = status.conditions
    if allowed == 0:
        conditions = _with_none_allowed(status, server.now())
    disrupted = {**status.disrupted_pods, pod.metadata.name: server.now()}
    changed = replace(
        status, disruptions_allowed=allowed, disrupted_pods=disrupted, conditions=conditions
    )
    return replace(budget, status=changed)


def _with_none_allowed(status: PodDisruptionBudgetStatus, now: Timestamp) -> tuple[Condition, ...]:
    """Return the conditions of a budget that allows no disruption any more."""
    known = {c.type: c for c in status.conditions}
    was = known.get(DISRUPTION_ALLOWED)
    since = was.last_transition_time if was is not None and was.status == "False" else now
    known[DISRUPTION_ALLOWED] = Condition(
        type=DISRUPTION_ALLOWED,
        status="False",
        observed_generation=status.observed_generation,
        last_transition_time=since,
        reason=INSUFFICIENT_PODS,
    )
    return tuple(known.values())


def _why_not(name: str, status: PodDisruptionBudgetStatus, doesnt: str) -> str:
    condition = next((c for c in status.conditions if c.type == DISRUPTION_ALLOWED), None)
    says = condition is not None and condition.status == "False" and condition.message != ""
    if condition is not None and says and condition.reason == SYNC_FAILED:
        return f"{doesnt} because it failed sync: {condition.message}"
    if status.current_healthy <= status.desired_healthy:
        counts = f"{status.desired_healthy} healthy pods and has {status.current_healthy} currently"
        return f"The disruption budget {name} needs {counts}"
    if condition is not None and says:
        return f"{doesnt} ({condition.reason}): {condition.message}"
    return doesnt


def _cause(message: str) -> StatusCause:
    return StatusCause(reason=_CAUSE, message=message)


def _refused(why: str, retry_after_s: int) -> StatusError:
    details = StatusDetails(causes=(_cause(why),), retry_after_seconds=retry_after_s)
    return failure(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", _VIOLATED, details)
