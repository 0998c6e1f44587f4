"""The live scheduler: schedules pods as a cluster changes, and writes its decisions.

scheduler            the whole without clock and network: changes go in, effects come out
assume_cache, claim_assume_cache
                     the cluster by the watch, with decisions that the watch does not report yet
double_allocation    devices that two schedulers gave away, and who was first
queueing_hints, queue_entries, scheduling_queue, backoff
                     which events can help a pod; activeQ, backoffQ and unschedulable pods
group_scheduling     groups of pods: tried together, bound, and preempting as one
evaluation_turns     expressions that take long are evaluated in slices, between other pods
effects              reads, writes and waits as values, and who runs them
claim_writes, pre_bind, binding_cycle
                     claims allocated and deallocated; PreBind; a pod bound or all undone
failure_handler, stale_explanations, status_updates
                     pods without a node: conditions, events, preemption
config, metrics      configuration and clocks; metrics
loop                 the thin part that reads, writes and waits (asyncio)

All but `loop` is pure: time is an argument.
"""

from moorage.scheduler.live.backoff import Backoff
from moorage.scheduler.live.config import (
    ExplainIn,
    Moment,
    SchedulerConfig,
    kinds_of,
    read_config,
)
from moorage.scheduler.live.effects import (
    EffectDone,
    EffectLost,
    EffectRefused,
    ReadObject,
)
from moorage.scheduler.live.failure_handler import Explain
from moorage.scheduler.live.loop import SchedulerLoop
from moorage.scheduler.live.scheduler import LiveScheduler

__all__ = [
    "Backoff",
    "EffectDone",
    "EffectLost",
    "EffectRefused",
    "Explain",
    "ExplainIn",
    "LiveScheduler",
    "Moment",
    "ReadObject",
    "SchedulerConfig",
    "SchedulerLoop",
    "kinds_of",
    "read_config",
]
