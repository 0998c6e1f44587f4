"""MOVED."""

from mooring.insight.plan.planner import BetterOrder as BetterOrder  # noqa
from mooring.insight.plan.planner import better_order as better_order  # noqa

__all__ = ["BetterOrder", "better_order"]  # noqa
