"""MOVED."""

from mooring.store.sqlite.maintenance import RESTORE_GAP as RESTORE_GAP

__all__ = ["RESTORE_GAP"]
