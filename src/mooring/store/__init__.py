"""The store: keys, values, revisions and changes, on SQLite, on etcd or in memory.

`contract` says what every store does. Open one with `mooring.store.sqlite.open_sqlite`,
`mooring.store.etcd.open_etcd` or `mooring.store.memory.open_memory`; they are not imported here, so
that asking for the contract loads none of them.
"""

from mooring.store.contract import (
    Change,
    Deletion,
    Entry,
    Event,
    Page,
    Progress,
    Put,
    Store,
    Watch,
)

__all__ = [
    "Change",
    "Deletion",
    "Entry",
    "Event",
    "Page",
    "Progress",
    "Put",
    "Store",
    "Watch",
]
