"""MOVED."""

from mooring.store.sqlite.maintenance import check as check

__all__ = ["check"]
