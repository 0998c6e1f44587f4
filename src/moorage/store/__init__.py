"""The store: keys, values, revisions and watches, on SQLite, on etcd or in memory.

contract     what every store does, on one page
errors       the tree of errors
keys         bounds on keys, values and revisions, the same for every backend
broadcaster  hands changes to watches
memory       the store in memory
sqlite       the store in a folder of one server
etcd         the store in etcd

Open one with `moorage.store.sqlite.open_sqlite`, `moorage.store.etcd.open_etcd` or
`moorage.store.memory.open_memory`; this package does not import them, so that the contract loads no
backend.
"""

from moorage.store.contract import (
    Deletion,
    Entry,
    Event,
    KeyChange,
    Page,
    Progress,
    Put,
    Store,
    Watch,
)

__all__ = [
    "Deletion",
    "Entry",
    "Event",
    "KeyChange",
    "Page",
    "Progress",
    "Put",
    "Store",
    "Watch",
]
