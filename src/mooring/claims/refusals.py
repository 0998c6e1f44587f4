"""MOVED."""

from mooring.claims.pod_claims import ClaimRejection as Refused

__all__ = ["Refused"]
