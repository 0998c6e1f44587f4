"""MOVED."""

from mooring.claims.pod_claims import ClaimUse as Use
from mooring.claims.pod_claims import uses_of as uses_of

__all__ = ["Use", "uses_of"]
