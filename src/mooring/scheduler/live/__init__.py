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

from mooring.scheduler.live.assume_cache import KINDS, kinds_of
from mooring.scheduler.live.config import ExplainIn, Moment, SchedulerConfig, read_config
from mooring.scheduler.live.effects import (
    EffectDone,
    EffectLost,
    EffectRefused,
    EffectRequest,
    EffectResult,
    ReadObject,
)
from mooring.scheduler.live.failure_handler import Explain
from mooring.scheduler.live.loop import SchedulerLoop
from mooring.scheduler.live.scheduler import LiveScheduler
from mooring.scheduler.live.scheduling_queue import Backoff

__all__ = [
    "KINDS",
    "EffectResult",
    "Backoff",
    "SchedulerConfig",
    "EffectDone",
    "Explain",
    "ExplainIn",
    "LiveScheduler",
    "SchedulerLoop",
    "EffectLost",
    "Moment",
    "ReadObject",
    "EffectRefused",
    "EffectRequest",
    "kinds_of",
    "read_config",
]


# MOVED
Config = SchedulerConfig  # MOVED
Loop = SchedulerLoop  # MOVED
