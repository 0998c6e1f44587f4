"""The live scheduler: places pods as a cluster changes, and writes what it decides.

core         the whole without clock and wires: what happens goes in, what to do comes out
livecluster, claimcache
             the cluster as it is told, with what was decided and is not told yet
hints, queue what each pod waits for, and which is tried next
jobs, asks   steps that read and write, as generators; who runs them
claimwrites, binding
             claims given and taken back; a pod bound
refusing, reporting
             what is said of a pod without a node, and done to make room
config, metrics, moment
             how it is set, what it counts, which clocks it needs
loop         the thin part that does the reading, writing and waiting (asyncio)

All but `loop` is pure: time is an argument.
"""

from mooring.scheduler.live.asks import Answer, Done, Lost, Read, Refused
from mooring.scheduler.live.config import Config, ExplainIn, read_config
from mooring.scheduler.live.core import LiveScheduler
from mooring.scheduler.live.jobs import Request
from mooring.scheduler.live.livecluster import KINDS, kinds_of
from mooring.scheduler.live.loop import Loop
from mooring.scheduler.live.moment import Moment
from mooring.scheduler.live.queue import Backoff
from mooring.scheduler.live.refusing import Explain

__all__ = [
    "KINDS",
    "Answer",
    "Backoff",
    "Config",
    "Done",
    "Explain",
    "ExplainIn",
    "LiveScheduler",
    "Loop",
    "Lost",
    "Moment",
    "Read",
    "Refused",
    "Request",
    "kinds_of",
    "read_config",
]
