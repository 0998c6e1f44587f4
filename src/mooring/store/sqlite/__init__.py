"""The store on SQLite: one folder, one server, nothing to install."""

from mooring.store.sqlite.store import SqliteStore, open_sqlite
from mooring.store.sqlite.upkeep import backup, check, restore

__all__ = ["SqliteStore", "backup", "check", "open_sqlite", "restore"]
