"""Counts of the work of rankings: tests assert them, and metrics report times."""

from __future__ import annotations

from mooring.scheduler.framework import NODES_MEASURED_MAX, PluginTimes


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
