"""What if: two clusters, one with changes and one without, and the difference.

    snapshot ─┬─ apply no changes ─► ChangedCluster ─ plan ─┐
              └─ apply changes ────► ChangedCluster ─ plan ─┴─► Difference

changed_cluster  the changes, and a snapshot once every pod that has to leave has left
evicted_pods     pods that leave: by which taints, which come back, and their claims
difference       two clusters, planned and compared
change_words     changes as users write them; taint_words reads taints
"""

from __future__ import annotations

from moorage.insight.errors import UnknownNameError
from moorage.insight.whatif.changed_cluster import (
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
from moorage.insight.whatif.difference import Difference, compare, difference
from moorage.insight.whatif.evicted_pods import EvictedPod, PodFate

__all__ = [
    "AddObjects",
    "AddTaintRule",
    "ChangedCluster",
    "ClusterChange",
    "CordonNode",
    "DeleteClaims",
    "DeletePods",
    "Difference",
    "DrainNode",
    "EvictedPod",
    "PodFate",
    "RemoveNodes",
    "RemoveTaintRule",
    "ReplaceSlices",
    "TaintNode",
    "UnknownNameError",
    "apply",
    "compare",
    "difference",
]
