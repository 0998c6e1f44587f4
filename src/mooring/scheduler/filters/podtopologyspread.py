"""A pod must not make the domains of a topology more uneven than it says."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "PodTopologySpread"
TEXT = "node(s) didn't match pod topology spread constraints"
UNEVEN = Refusal(PLUGIN, (TEXT,))
NO_DOMAIN = Refusal(PLUGIN, (f"{TEXT} (missing required label)",), is_unresolvable=True)


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether the pod has hard constraints."""
    return bool(shape.spreading.hard)


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:  # noqa: ARG001
    """Return a refusal if the node's domain has too many pods: two look-ups a constraint."""
    labels = state.facts.labels
    for tally in outlook.hard:
        constraint = tally.constraint
        domain = labels.get(constraint.topology_key)
        if domain is None:
            return NO_DOMAIN
        pods = tally.pods_in.get(domain, 0) + constraint.counts_itself
        if pods - tally.minimum > constraint.max_skew:
            return UNEVEN
    return None
