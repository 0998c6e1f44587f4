"""MOVED."""

from mooring.insight.plan.placements import GrantedDevice as Given  # noqa
from mooring.insight.plan.placements import GrantedRequest as Granted  # noqa
from mooring.insight.plan.placements import Placement as Placement  # noqa
from mooring.insight.plan.placements import chosen_results as chosen_results  # noqa
from mooring.insight.plan.placements import placement_of as placement_of  # noqa

__all__ = ["Given", "Granted", "Placement", "chosen_results", "placement_of"]  # noqa
