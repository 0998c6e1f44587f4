"""Pod groups: the pods of a gang are placed together or not at all, and so are groups of groups.

gangs          a group with its pods, and trees of groups
placements     the domains of a topology, of which a group must use one alone
gang_search    the nodes of one gang within one placement
algorithm      all groups of a tree in their placements
preemption     the pods that must leave for a group
decision       nodes for the pods of a tree, or messages for each of them
"""

from moorage.scheduler.pod_groups.decision import (
    TOO_FEW,
    GroupDecision,
    UnitDecision,
    decide,
    held_back,
    schedule_group,
    unready,
)
from moorage.scheduler.pod_groups.gang_search import PodResult
from moorage.scheduler.pod_groups.gangs import CompositeGang, Gang, Unit, unit_of
from moorage.scheduler.pod_groups.preemption import GroupPreemption

__all__ = [
    "TOO_FEW",
    "CompositeGang",
    "Gang",
    "GroupDecision",
    "GroupPreemption",
    "PodResult",
    "Unit",
    "UnitDecision",
    "decide",
    "held_back",
    "schedule_group",
    "unit_of",
    "unready",
]
