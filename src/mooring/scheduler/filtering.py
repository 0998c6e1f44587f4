"""Asks nodes whether they will do.

1. What stops a pod anywhere is known from its shape (`obstacle`).
2. A pod that names nodes is not asked for elsewhere; of all others the same is said.
3. On a node the filters are asked in order, and the first that refuses is heard.

A node that will do costs some tenths of a µs for each filter that applies to the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from mooring.scheduler.filters import FILTERS, Check
from mooring.scheduler.fleet import Fleet
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.plugin_times import FILTER, PluginTimes
from mooring.scheduler.refusals import Obstacle, Refusal
from mooring.scheduler.shape import PodShape

_PLUGIN_OF = {rule.check: rule.plugin for rule in FILTERS}


class Survey(Struct, frozen=True):
    """The nodes that will do, and what the others say, in the order of their names."""

    nodes_count: int
    fitting: tuple[NodeState, ...] = ()
    refusals: Mapping[str, Refusal] = {}  # by name, of the nodes that were asked
    elsewhere: Refusal | None = None  # what is said of those that were not
    obstacle: Obstacle | None = None  # why none was


def checks_for(shape: PodShape, outlook: Outlook) -> tuple[Check, ...]:
    """Return the filters that can refuse a node to the shape, in order."""
    return tuple(rule.check for rule in FILTERS if rule.applies(shape, outlook))


def judge(
    shape: PodShape,
    state: NodeState,
    outlook: Outlook,
    checks: tuple[Check, ...],
    times: PluginTimes | None = None,
) -> Refusal | None:
    """Return the first refusal, or None if the node will do."""
    if times is not None:
        found = (times.run(_PLUGIN_OF[c], FILTER, c, shape, state, outlook) for c in checks)
        return next((refusal for refusal in found if refusal is not None), None)
    for check in checks:
        refusal = check(shape, state, outlook)
        if refusal is not None:
            return refusal
    return None


def survey(
    fleet: Fleet,
    shape: PodShape,
    *,
    also: Callable[[NodeState], Refusal | None] | None = None,
) -> Survey:
    """Ask every node that can be meant; `also` is asked last, where all else agrees."""
    count = len(fleet.nodes)
    if shape.obstacle is not None:
        return Survey(count, obstacle=shape.obstacle)
    outlook = fleet.outlook(shape)
    checks = checks_for(shape, outlook)
    fitting: list[NodeState] = []
    refusals: dict[str, Refusal] = {}
    for name in sorted(fleet.nodes if shape.node_names is None else shape.node_names):
        state = fleet.nodes.get(name)
        if state is None:
            continue
        refusal = judge(shape, state, outlook, checks) or (also(state) if also else None)
        if refusal is None:
            fitting.append(state)
        else:
            refusals[name] = refusal
    return Survey(count, tuple(fitting), refusals, shape.elsewhere)
