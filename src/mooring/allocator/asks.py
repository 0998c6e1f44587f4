"""MOVED."""

from mooring.allocator.requests import SubRequest as Ask  # noqa
from mooring.allocator.requests import RequestPlan as Plan  # noqa
from mooring.allocator.requests import RESULTS_MAX as RESULTS_MAX  # noqa
from mooring.allocator.requests import claim_name as claim_name  # noqa
from mooring.allocator.requests import plan_of as plan_of  # noqa

__all__ = ["Ask", "Plan", "RESULTS_MAX", "claim_name", "plan_of"]  # noqa
