"""MOVED."""

from mooring.insight.plan.arrival_orders import BetterOrder as BetterOrder  # noqa
from mooring.insight.plan.arrival_orders import better_order as better_order  # noqa

__all__ = ["BetterOrder", "better_order"]  # noqa
