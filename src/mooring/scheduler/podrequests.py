"""What a pod asks of a node, and what it holds once it is there.

Sums are those of `mooring.claims.podresources`, of exact quantities, brought to whole base units at
the end: thousandths of a CPU, bytes, pieces. Preparing costs a few µs for each container, once for
each shape of pods; nodes are then compared by integers.
"""

from __future__ import annotations

from mooring.api.core.pod import Pod
from mooring.api.core.resources import CPU, MEMORY, ResourceList
from mooring.api.quantity import Quantity
from mooring.claims.podresources import ASKED, Reading, has_pod_level_requests, requests_read
from mooring.scheduler.amounts import Amounts, Weights, amounts, weights

# What a container that asks for nothing counts for in scores.
MILLI_CPU_DEFAULT = 100
MEMORY_DEFAULT = 200 * 1024 * 1024
DEFAULTS: ResourceList = {
    CPU: Quantity.from_milli(MILLI_CPU_DEFAULT),
    MEMORY: Quantity.from_int(MEMORY_DEFAULT),
}


def asked_by(pod: Pod) -> Amounts:
    """Return what the pod needs free on a node."""
    return amounts(requests_read(pod, ASKED))


def held_by(pod: Pod, *, with_claims: bool = True) -> Amounts:
    """Return what the pod takes of the node it is on.

    A pod that is being resized counts with the most of what it asks for, was given and uses.
    With `with_claims` the node's own resources that its claims stand for count, too.
    """
    return amounts(requests_read(pod, _holding(pod, with_claims=with_claims)))


def held_in_scores(pod: Pod, *, with_claims: bool = True) -> Weights:
    """Return what the pod on its node counts for in scores: containers weigh something always."""
    reading = _holding(pod, with_claims=with_claims)
    defaults = DEFAULTS
    if has_pod_level_requests(pod):
        totals = requests_read(pod, reading)
        defaults = {name: default for name, default in DEFAULTS.items() if name not in totals}
    return weights(requests_read(pod, reading._replace(defaults=defaults)))


def asked_in_scores(pod: Pod) -> Weights:
    """Return what a pod that looks for a node counts for in LeastAllocated.

    Kubernetes leaves out what the pod asks for as a whole, here and only here.
    """
    return weights(requests_read(pod, Reading(defaults=DEFAULTS, with_pod_level=False)))


def _holding(pod: Pod, *, with_claims: bool) -> Reading:
    claims = pod.status.node_allocatable_resource_claim_statuses if with_claims else None
    return Reading(claim_statuses=claims or (), with_status=True)
