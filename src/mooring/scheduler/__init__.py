"""Where a pod goes: what filters nodes, what makes one better than another, what is said of it.

`prepare` reads a pod into a `PodShape` (`Shapes` does so once for all pods that are alike). A
`Fleet` holds nodes with the pods on them and gives the `Outlook` of a shape. `survey` asks every
node, `totals` weighs those that will do, `messages` has the words for when none does.
"""

from mooring.scheduler.filtering import Survey, judge, survey
from mooring.scheduler.fleet import Fleet
from mooring.scheduler.nodestate import NodeFacts, NodeState, read_facts
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Fault, Obstacle, Refusal
from mooring.scheduler.scoring import best, totals
from mooring.scheduler.shape import Occupant, PodShape, Settings, prepare
from mooring.scheduler.shapes import Shapes
from mooring.scheduler.spreading import default_selector

__all__ = [
    "Fault",
    "Fleet",
    "NodeFacts",
    "NodeState",
    "Obstacle",
    "Occupant",
    "Outlook",
    "PodShape",
    "Refusal",
    "Settings",
    "Shapes",
    "Survey",
    "best",
    "default_selector",
    "judge",
    "prepare",
    "read_facts",
    "survey",
    "totals",
]
