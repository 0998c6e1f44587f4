"""How many more replicas of a pod or claim fit, where, and what stops the next one.

fit            the entry point
replicas       pods alike, made from a pod, a controller, a claim or a template; a cluster filled
node_kinds     nodes that take the same number of replicas
device_supply  the devices of all nodes that a request could have
limits         why nodes take no more, and which devices stay free
levers         changes that let more replicas fit, each tried
"""

from moorage.insight.fit.fit import (
    REPLICAS_MAX,
    Fit,
    Fitted,
    NodeReplicas,
    Supply,
    fit,
    fit_planned,
)
from moorage.insight.fit.levers import Lever
from moorage.insight.fit.limits import Apart, Leftover, Limit, Shortage, ShortageCause
from moorage.insight.fit.replicas import Subject

__all__ = [
    "REPLICAS_MAX",
    "Apart",
    "Fit",
    "Fitted",
    "Leftover",
    "Lever",
    "Limit",
    "NodeReplicas",
    "Shortage",
    "ShortageCause",
    "Subject",
    "Supply",
    "fit",
    "fit_planned",
]
