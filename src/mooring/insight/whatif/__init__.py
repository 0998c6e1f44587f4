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

from mooring.insight.errors import UnknownNameError
from mooring.insight.whatif.changed_cluster import (
    AddObjects,
    AddTaintRule,
    ChangedCluster,
    ClusterChange,
    CordonNode,
    DeleteClaims,
    DeletePods,
    DrainNode,
    RemoveNodes,
    RemoveTaintRule,
    ReplaceSlices,
    TaintNode,
    apply,
)
from mooring.insight.whatif.difference import (
    Difference,
    compare,
    difference,
)
from mooring.insight.whatif.evicted_pods import EvictedPod, PodFate

__all__ = [
    "AddObjects",
    "AddTaintRule",
    "ClusterChange",
    "CordonNode",
    "DeleteClaims",
    "DeletePods",
    "EvictedPod",
    "Difference",
    "DrainNode",
    "PodFate",
    "RemoveNodes",
    "RemoveTaintRule",
    "ReplaceSlices",
    "TaintNode",
    "UnknownNameError",
    "ChangedCluster",
    "apply",
    "compare",
    "difference",
]


# MOVED
Change = ClusterChange  # MOVED
