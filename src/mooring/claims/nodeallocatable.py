"""MOVED."""

from mooring.claims.node_allocatable import FindDevice as FindDevice

__all__ = ["FindDevice"]
