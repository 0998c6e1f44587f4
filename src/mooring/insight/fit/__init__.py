"""Fit: how many more replicas of a pod or claim fit, where, and what stops the next one.

replicas     pods alike, made from a pod, a controller, a claim or a template
filling      a cluster filled with them, one after the other
stocks       the devices of the fleet that a request could have
shortages    which request runs out on a node, and why
limits       why nodes take no more, those that say the same together
leftovers    devices that stay free, and what keeps them apart
changes      what could be otherwise; levers: what of that lets more replicas fit
fit          the door
"""

from mooring.insight.fit.fit import REPLICAS_MAX, Fit, Fitted, NodeReplicas, Supply, fit
from mooring.insight.fit.levers import Lever
from mooring.insight.fit.limits import Apart, Leftover, Limit, Shortage, ShortageCause
from mooring.insight.fit.replicas import Subject

__all__ = [
    "REPLICAS_MAX",
    "Apart",
    "ShortageCause",
    "Fit",
    "Fitted",
    "Leftover",
    "Lever",
    "Limit",
    "NodeReplicas",
    "Shortage",
    "Subject",
    "Supply",
    "fit",
]


# MOVED
Place = NodeReplicas  # MOVED
