"""MOVED."""

from mooring.claims.pod_claims import ALL_FEATURES as ALL_FEATURES
from mooring.claims.pod_claims import ClaimFeatures as Features

__all__ = ["ALL_FEATURES", "Features"]
