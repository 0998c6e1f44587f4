"""MOVED."""

from mooring.insight.plan.placements import stand_in as stand_in  # noqa
from mooring.insight.plan.placements import stand_ins as stand_ins  # noqa
from mooring.insight.plan.placements import stands_for as stands_for  # noqa

__all__ = ["stand_in", "stand_ins", "stands_for"]  # noqa
