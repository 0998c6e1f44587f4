"""MOVED."""

from mooring.store.sqlite.backup_file import write_entries as write_entries

__all__ = ["write_entries"]
