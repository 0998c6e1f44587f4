"""The store on SQLite: one folder, one server, nothing to install."""

from mooring.store.sqlite.backupfile import restore_backup, write_backup
from mooring.store.sqlite.restoring import restore
from mooring.store.sqlite.store import SqliteStore, open_sqlite
from mooring.store.sqlite.upkeep import backup, check, compact, summarize

__all__ = [
    "SqliteStore",
    "backup",
    "check",
    "compact",
    "open_sqlite",
    "restore",
    "restore_backup",
    "summarize",
    "write_backup",
]
