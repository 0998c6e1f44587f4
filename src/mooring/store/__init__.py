"""The store: keys, values, revisions and changes, on SQLite or etcd.

`contract` says what every store does. Open one with `mooring.store.sqlite.open_sqlite` or
`mooring.store.etcd.open_etcd`; they are not imported here, so that asking for the contract
loads neither.
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
