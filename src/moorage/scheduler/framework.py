"""The scheduling framework: extension points, statuses of plugins, and how long plugins take.

A plugin answers with None where it has no objection, and otherwise with a status:

    # Unschedulable: the pod cannot go there, or nowhere, as things are; an expected answer
    # unresolvable: removing other pods would not change it, so preemption does not help
    # PluginError: the plugin failed; the pod is worth another attempt

As in Kubernetes every tenth cycle is measured, but always the same ones: the first, the eleventh
and so on. Filters and scores are measured for the first few nodes of a cycle only, so that
measuring costs the same in small and in large clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from msgspec import Struct

from moorage.scheduler.errors import CycleError

P = ParamSpec("P")
T = TypeVar("T")

PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
SCORE: Final = "Score"
RESERVE: Final = "Reserve"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"

SUCCESS: Final = "Success"
ERROR: Final = "Error"
UNSCHEDULABLE: Final = "Unschedulable"
SKIP: Final = "Skip"
UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"

# Plugins without a module of their own in `plugins`.
DEFAULT_BINDER: Final = "DefaultBinder"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"
DYNAMIC_RESOURCES: Final = "DynamicResources"
GANG_SCHEDULING: Final = "GangScheduling"
SCHEDULING_GATES: Final = "SchedulingGates"

SAMPLE_EVERY: Final = 10  # cycles
NODES_MEASURED_MAX: Final = 8  # in a cycle


class Unschedulable(Struct, frozen=True, gc=False):
    """A plugin rejects the pod, with Kubernetes' message."""

    plugin: str
    reasons: tuple[str, ...]
    is_unresolvable: bool = False


class PluginError(Struct, frozen=True, gc=False):
    """A plugin cannot read something in the pod."""

    plugin: str
    message: str


PluginStatus = Unschedulable | PluginError

Observe = Callable[[float, str, str, str], None]  # seconds, plugin, extension point, status


class PluginTimes:
    """Runs plugins, and records how long each took and its status."""

    def __init__(self, elapsed: Callable[[], float], observe: Observe) -> None:
        self._elapsed = elapsed
        self.observe = observe

    def run(
        self, plugin: str, point: str, call: Callable[P, T], *args: P.args, **more: P.kwargs
    ) -> T:
        """Return the plugin's answer."""
        start_s = self._elapsed()
        try:
            found = call(*args, **more)
        except CycleError:
            self.observe(self._elapsed() - start_s, plugin, point, ERROR)
            raise
        self.observe(self._elapsed() - start_s, plugin, point, status_of(found, point))
        return found


class RankingWork:
    """How much all rankings of a cluster did, and how long plugins take at it."""

    nodes_filtered = 0  # by the filters and scores
    nodes_asked = 0  # for their devices
    nodes_compared = 0  # scored relative to each other, or looked at for that
    times: PluginTimes | None = None  # None: this cycle is not measured
    measured_left = 0  # nodes of which filters and scores are still measured in this cycle

    def measure(self, times: PluginTimes | None) -> None:
        """Begin a cycle that is measured, or is not."""
        self.times = times
        self.measured_left = 0 if times is None else NODES_MEASURED_MAX


def run_timed(
    times: PluginTimes | None,
    plugin: str,
    point: str,
    call: Callable[P, T],
    *args: P.args,
    **more: P.kwargs,
) -> T:
    """Return the plugin's answer, measured if this cycle is."""
    if times is None:
        return call(*args, **more)
    return times.run(plugin, point, call, *args, **more)


def status_of(found: object, point: str) -> str:
    """Return the Kubernetes status code of a plugin's answer.

    A PreFilter without an answer has nothing to do for the pod. A PostFilter succeeds only if it
    finds pods to preempt, the first part of its answer.
    """
    if point == POST_FILTER:
        is_found = isinstance(found, tuple) and found[0] is not None
        return SUCCESS if is_found else UNSCHEDULABLE
    if point == PRE_FILTER and found is None:
        return SKIP
    if isinstance(found, PluginError):
        return ERROR
    if isinstance(found, Unschedulable):
        return UNRESOLVABLE if found.is_unresolvable else UNSCHEDULABLE
    return SUCCESS
