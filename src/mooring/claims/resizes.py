"""MOVED."""

from mooring.claims.pod_resources import RESIZE_PENDING as RESIZE_PENDING

__all__ = ["RESIZE_PENDING"]
