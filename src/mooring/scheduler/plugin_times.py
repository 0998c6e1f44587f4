"""How long plugins take at their extension points, measured in some of the cycles.

As in Kubernetes every tenth cycle is measured, but always the same ones: the first, the eleventh
and so on. What a cycle asks of nodes is measured for the first few of them only, so that
measuring costs the same in small and in large fleets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from mooring.scheduler.errors import CycleFault
from mooring.scheduler.refusals import Fault, Refusal

P = ParamSpec("P")
T = TypeVar("T")

SAMPLE_EVERY: Final = 10  # cycles
NODES_MEASURED_MAX: Final = 8  # in a cycle

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

DEFAULT_BINDER: Final = "DefaultBinder"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"

Note = Callable[[float, str, str, str], None]  # seconds, plugin, extension point, status


class PluginTimes:
    """Runs what plugins do, and notes how long each took and what came of it."""

    def __init__(self, elapsed: Callable[[], float], note: Note) -> None:
        self._elapsed = elapsed
        self.note = note

    def run(
        self, plugin: str, point: str, call: Callable[P, T], *args: P.args, **more: P.kwargs
    ) -> T:
        """Return what a plugin returns."""
        start_s = self._elapsed()
        try:
            found = call(*args, **more)
        except CycleFault:
            self.note(self._elapsed() - start_s, plugin, point, ERROR)
            raise
        self.note(self._elapsed() - start_s, plugin, point, status_of(found, point))
        return found


def run_timed(
    times: PluginTimes | None,
    plugin: str,
    point: str,
    call: Callable[P, T],
    *args: P.args,
    **more: P.kwargs,
) -> T:
    """Return what a plugin returns, measured if this cycle is."""
    if times is None:
        return call(*args, **more)
    return times.run(plugin, point, call, *args, **more)


def status_of(found: object, point: str) -> str:
    """Return the status, in Kubernetes' words, that an answer stands for.

    A PreFilter without an answer has nothing to do for the pod. A PostFilter succeeds only if it
    finds which pods can make room, the first part of its answer.
    """
    if point == POST_FILTER:
        is_found = isinstance(found, tuple) and found[0] is not None
        return SUCCESS if is_found else UNSCHEDULABLE
    if point == PRE_FILTER and found is None:
        return SKIP
    if isinstance(found, Fault):
        return ERROR
    if isinstance(found, Refusal):
        return UNRESOLVABLE if found.is_unresolvable else UNSCHEDULABLE
    return SUCCESS
