"""What a pod asks for must be left on the node.

An extended resource that the node does not have, but device classes provide, is left to claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"


def applies(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    """Return whether a node can be too full: always, by the number of its pods."""
    return True


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:
    """Return all that is short: four comparisons, and one for each other resource."""
    asked, held, facts = shape.asked, state.held, state.facts
    total = facts.allocatable
    if (
        len(state.pods) < facts.pods_max
        and (not asked.milli_cpu or asked.milli_cpu <= total.milli_cpu - held.milli_cpu)
        and (not asked.memory or asked.memory <= total.memory - held.memory)
        and not asked.ephemeral_storage
        and not asked.others
    ):
        return None
    texts = []
    is_unresolvable = False
    if len(state.pods) >= facts.pods_max:
        texts.append(TOO_MANY_PODS)
    for name, wanted, there, taken in _resources(shape, state, outlook):
        if wanted > 0 and wanted > there - taken:
            texts.append(f"Insufficient {name}")
            is_unresolvable = is_unresolvable or wanted > there
    return Refusal(PLUGIN, tuple(texts), is_unresolvable) if texts else None


def _resources(
    shape: PodShape, state: NodeState, outlook: Outlook
) -> Iterator[tuple[str, int, int, int]]:
    """Yield for each resource its name, what is wanted, what the node has and what is taken."""
    asked, total, held = shape.asked, state.facts.allocatable, state.held
    yield "cpu", asked.milli_cpu, total.milli_cpu, held.milli_cpu
    yield "memory", asked.memory, total.memory, held.memory
    yield (
        "ephemeral-storage",
        asked.ephemeral_storage,
        total.ephemeral_storage,
        held.ephemeral_storage,
    )
    for name, wanted in asked.others.items():
        there = total.others.get(name, 0)
        if there > 0 or name not in outlook.world.delegated:
            yield name, wanted, there, held.others.get(name, 0)
