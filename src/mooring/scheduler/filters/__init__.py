"""What a node must be like, one rule a module, in the order in which Kubernetes asks them.

A filter has two parts. `applies` tells, once for a shape and its outlook, whether any node could
be refused at all; `check` then answers for one node with None or a refusal, in well under a µs
where the node will do. Claims are asked for before `declaredfeatures`, which comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mooring.scheduler.filters import (
    declaredfeatures,
    interpodaffinity,
    nodeaffinity,
    nodename,
    nodeports,
    noderesources,
    nodeunschedulable,
    podtopologyspread,
    tainttoleration,
)
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

Check = Callable[[PodShape, NodeState, Outlook], Refusal | None]


class Filter(NamedTuple):
    """One rule."""

    plugin: str
    applies: Callable[[PodShape, Outlook], bool]
    check: Check
    is_wide: bool = False  # pods on other nodes can change its answer
    is_fixed: bool = False  # no pod can: the node's own facts decide


WIDE = (podtopologyspread, interpodaffinity)
FIXED = (nodename, nodeunschedulable, tainttoleration, nodeaffinity)

FILTERS = tuple(
    Filter(module.PLUGIN, module.applies, module.check, module in WIDE, module in FIXED)
    for module in (
        nodename,
        nodeunschedulable,
        tainttoleration,
        nodeaffinity,
        nodeports,
        noderesources,
        podtopologyspread,
        interpodaffinity,
        declaredfeatures,
    )
)

# Claims are asked for before these.
LAST = (declaredfeatures.PLUGIN,)
