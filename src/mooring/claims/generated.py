"""MOVED."""

from mooring.claims.claim_templates import claim_from_template as claim_from_template
from mooring.claims.claim_templates import find_generated as find_generated
from mooring.claims.claim_templates import group_claim_statuses as group_claim_statuses
from mooring.claims.claim_templates import pod_claim_statuses as pod_claim_statuses

__all__ = ["claim_from_template", "find_generated", "group_claim_statuses", "pod_claim_statuses"]
