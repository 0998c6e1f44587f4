"""Where a pod goes: which nodes will do, which is best, which devices its claims get there.

A `Cluster` follows nodes, pods, devices, classes, claims and groups, one by one. `schedule` says
where a pod goes (`Placed`) or why nowhere (`Pending`), and changes nothing; `reserve` writes that
down and `release` takes it back. `schedule_group` does the same for the pods of a group.

Below that: `Shapes` reads each kind of pods once, a `Fleet` holds nodes with the pods on them and
gives the `Outlook` of a shape, `survey` asks every node, `totals` weighs those that will do, and
`messages` has the words for when none does.
"""

from mooring.scheduler.claimcheck import GivenUp, Grant
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Attempt, Outcome, Pending, Placed, attempt, schedule
from mooring.scheduler.features import Features
from mooring.scheduler.filtering import Survey, judge, survey
from mooring.scheduler.fleet import Fleet
from mooring.scheduler.groups import Gang, schedule_group
from mooring.scheduler.nodestate import NodeFacts, NodeState, read_facts
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.preemption import NoPreemption, Preemption, preempt
from mooring.scheduler.refusals import Fault, Obstacle, Refusal
from mooring.scheduler.reserving import Fresh, Reservation, release, reserve
from mooring.scheduler.scoring import best, totals
from mooring.scheduler.shape import Occupant, PodShape, Settings, prepare
from mooring.scheduler.shapes import Shapes
from mooring.scheduler.spreading import DefaultSpreading, default_selector

__all__ = [
    "Attempt",
    "Cluster",
    "DefaultSpreading",
    "Fault",
    "Features",
    "Fleet",
    "Fresh",
    "Gang",
    "GivenUp",
    "Grant",
    "NoPreemption",
    "NodeFacts",
    "NodeState",
    "Obstacle",
    "Occupant",
    "Outcome",
    "Outlook",
    "Pending",
    "Placed",
    "PodShape",
    "Preemption",
    "Refusal",
    "Reservation",
    "Settings",
    "Shapes",
    "Survey",
    "attempt",
    "best",
    "default_selector",
    "judge",
    "preempt",
    "prepare",
    "read_facts",
    "release",
    "reserve",
    "schedule",
    "schedule_group",
    "survey",
    "totals",
]
