"""MOVED."""

from mooring.claims.pod_claims import ClaimEntry as Entry
from mooring.claims.pod_claims import Named as Named
from mooring.claims.pod_claims import NotCreated as NotCreated
from mooring.claims.pod_claims import NotNeeded as NotNeeded
from mooring.claims.pod_claims import Unsupported as Unsupported
from mooring.claims.pod_claims import claim_names as claim_names
from mooring.claims.pod_claims import claims_to_release as claims_to_release
from mooring.claims.pod_claims import reference_of as reference_of
from mooring.claims.pod_claims import statuses_of as statuses_of

__all__ = [
    "Entry",
    "Named",
    "NotCreated",
    "NotNeeded",
    "Unsupported",
    "claim_names",
    "claims_to_release",
    "reference_of",
    "statuses_of",
]
