"""Decisions of the scheduler that an API server would accept.

The scheduler finds a node for a pod whose claim has no place left for another reservation: only
the write of its PreBind is refused, each time that it tries. So such a pod waits, and a plan says
so. A cluster that runs learns it from its API server.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims import is_reserved_for
from moorage.insight.messages import full_name
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import DYNAMIC_RESOURCES, PluginError
from moorage.scheduler.node_ranking import NODES_ALL_ASKED_MAX
from moorage.scheduler.scheduling_cycle import Attempt, Outcome, Pending, Placed, attempt, schedule
from moorage.validation.resource_claim_status import RESERVED_FOR_MAX

NODES_ASKED_MAX: Final = 512  # besides preferred ones
PRE_BIND: Final = f'running PreBind plugin "{DYNAMIC_RESOURCES}": '


def decide(cluster: Cluster, pod: Pod) -> Outcome:
    """Return where a pod goes and is bound, or why nowhere."""
    outcome = schedule(cluster, pod)
    if not isinstance(outcome, Placed):
        return outcome
    full = full_claim(cluster, outcome)
    return outcome if full is None else _refused(cluster, pod, full)


def placed_anywhere(cluster: Cluster, pod: Pod, preferred: Sequence[str] = ()) -> Placed | None:
    """Return the pod on a node, if it gets one; in a large cluster on any that takes it.

    Preferred nodes are asked first, and then not all others: whoever asks wants to know whether a
    change helps, not how it compares.
    """
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending):
        return None
    try:
        if len(cluster.snapshot.nodes) < NODES_ALL_ASKED_MAX:
            found = ready.best_placed()
        else:
            found = ready.anywhere(preferred, asked_max=NODES_ASKED_MAX)
    except CycleError:
        return None
    return None if found is None or full_claim(cluster, found) is not None else found


def full_claim(cluster: Cluster, placed: Placed) -> ResourceClaim | None:
    """Return a claim of a placed pod that cannot be reserved for it any more."""
    for use in () if placed.needs is None else placed.needs.uses:
        count = len(use.claim.status.reserved_for)
        if count >= RESERVED_FOR_MAX and not is_reserved_for(
            use.claim, placed.pod, cluster.features.claims
        ):
            return use.claim
    return None


def is_full_claim(pending: Pending) -> bool:
    """Return whether a pod has a node, but no reservation of its claim."""
    return pending.is_fault and pending.reason.startswith(PRE_BIND)


def _refused(cluster: Cluster, pod: Pod, claim: ResourceClaim) -> Pending:
    count = len(claim.status.reserved_for) + 1
    text = (
        f"{PRE_BIND}add reservation to claim {full_name(claim)}: ResourceClaim.resource.k8s.io "
        f'"{claim.metadata.name}" is invalid: status.reservedFor: Too many: {count}: must have at '
        f"most {RESERVED_FOR_MAX} items"
    )
    status = PluginError(DYNAMIC_RESOURCES, text)
    diagnosis = FitDiagnosis(len(cluster.snapshot.nodes), pre_filter_status=status)
    return Pending(pod, diagnosis, reason=text, message=text, is_fault=True)


# --- pods that are alike ------------------------------------------------------------------------


class Refusals:
    """The pods that got no node since the last change of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Hashable, Pending] = {}

    def like(self, pod: Pod) -> Pending | None:
        """Return the refusal of a pod if an equal pod was refused, else None."""
        if not self._known or _is_nominated(pod):
            return None
        ready = attempt(self._cluster, pod)
        found = self._known.get(_kind(ready)) if isinstance(ready, Attempt) else None
        return None if found is None else replace(found, pod=pod)

    def remember(self, pending: Pending) -> None:
        """Remember a refusal, unless it is specific to this pod.

        Faults may be temporary; victims and claims to deallocate belong to one pod.
        """
        is_own = pending.is_fault or pending.preemption is not None
        if is_own or pending.deallocation is not None or _is_nominated(pending.pod):
            return
        if pending.diagnosis.pre_filter_status is None:
            ready = attempt(self._cluster, pending.pod)
            if isinstance(ready, Attempt):
                self._known[_kind(ready)] = pending

    def forget(self) -> None:
        """Forget all refusals, because the cluster has changed."""
        self._known.clear()


def _kind(ready: Attempt) -> Hashable:
    spec = ready.pod.spec
    return ready.kind, spec.priority or 0, spec.preemption_policy


def _is_nominated(pod: Pod) -> bool:
    return bool(pod.status.nominated_node_name)
