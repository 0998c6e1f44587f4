"""MOVED."""

from mooring.claims.pod_resources import ASKED as ASKED
from mooring.claims.pod_resources import Reading as Reading
from mooring.claims.pod_resources import container_claim_resources as container_claim_resources
from mooring.claims.pod_resources import container_limits as container_limits
from mooring.claims.pod_resources import has_pod_level_requests as has_pod_level_requests
from mooring.claims.pod_resources import is_huge_page as is_huge_page
from mooring.claims.pod_resources import pod_requests as pod_requests
from mooring.claims.pod_resources import requests_read as requests_read

__all__ = [
    "ASKED",
    "Reading",
    "container_claim_resources",
    "container_limits",
    "has_pod_level_requests",
    "is_huge_page",
    "pod_requests",
    "requests_read",
]
