"""MOVED."""

from mooring.controllers.resource_claim_entries import EntryNeed as Need  # noqa
from mooring.controllers.resource_claim_entries import EntryProblem as Problem  # noqa
from mooring.controllers.resource_claim_entries import group_need as group_need  # noqa
from mooring.controllers.resource_claim_entries import pod_need as pod_need  # noqa

__all__ = ["Need", "Problem", "group_need", "pod_need"]  # noqa
