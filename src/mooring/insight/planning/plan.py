"""MOVED."""

from mooring.insight.plan.planner import Plan as Plan  # noqa
from mooring.insight.plan.planner import Result as Result  # noqa
from mooring.insight.plan.planner import new_names as new_names  # noqa
from mooring.insight.plan.planner import plan as plan  # noqa

__all__ = ["Plan", "Result", "new_names", "plan"]  # noqa
