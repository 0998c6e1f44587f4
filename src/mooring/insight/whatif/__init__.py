"""What if: two worlds, one with changes and one without, and the difference.

    snapshot ─┬─ settle ──────────────► World ─ plan ─┐
              └─ changes, then settle ─► World ─ plan ─┴─► Difference

changes     what may be changed
editing     changes, written into a snapshot
departures  pods that leave, and what becomes of them and of their claims
nodetaints  pods that leave because their node is tainted
worlds      a snapshot after changes, once every pod that has to leave has left
standings   where pods are, and with which devices
difference  two worlds, planned and compared
"""

from __future__ import annotations

from mooring.insight.whatif.changes import (
    AddObjects,
    AddTaintRule,
    Change,
    CordonNode,
    DeleteClaims,
    DeletePods,
    DrainNode,
    RemoveNodes,
    RemoveTaintRule,
    ReplaceSlices,
    TaintNode,
    UnknownNameError,
)
from mooring.insight.whatif.departures import Departure, Fate
from mooring.insight.whatif.difference import (
    Difference,
    compare,
    difference,
)
from mooring.insight.whatif.worlds import World, apply

__all__ = [
    "AddObjects",
    "AddTaintRule",
    "Change",
    "CordonNode",
    "DeleteClaims",
    "DeletePods",
    "Departure",
    "Difference",
    "DrainNode",
    "Fate",
    "RemoveNodes",
    "RemoveTaintRule",
    "ReplaceSlices",
    "TaintNode",
    "UnknownNameError",
    "World",
    "apply",
    "compare",
    "difference",
]
