"""The store on SQLite: one folder, one server, nothing to install.

store         the contract's verbs, on one writer and a few readers
writer        the thread that commits writes in groups
write_group   the writes of one transaction, with few statements
jobs          what the writer is asked to do
transactions  the SQL of reads, compaction and expiry
database      the folder with its lock, the tables and their format
disk          whether the files are still there and can be written
recovery      whether the database is whole again after the disk failed
maintenance   check, summarize, compact, copy and restore a store
backup_file   a backup as one file, with checksums
"""

from moorage.store.sqlite.backup_file import restore_backup, write_backup
from moorage.store.sqlite.maintenance import backup, check, compact, restore, summarize
from moorage.store.sqlite.store import SqliteStore, open_sqlite

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
