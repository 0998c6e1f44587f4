"""What keys hold that were lately read or written, kept in memory.

One server has the folder, and all that it writes is told here before anybody is answered. So what
is kept is what the database holds, and reading it again costs no call of the system.

A read may see a commit before it is told here. Therefore each key comes with the revision up to
which it is known, and what is told later but is older changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from mooring.store.contract import Change, Entry, Put

BYTES_MAX = 32 * 2**20
KEY_COST_BYTES = 300  # of a key that is kept, beside its text and value


class Known(NamedTuple):
    """What a key holds, None for nothing, as of a revision."""

    entry: Entry | None
    revision: int


class Recent:
    """Keys and what they hold, those that were used last; bounded in bytes."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._bytes_left = bytes_max

    def find(self, key: str) -> Known | None:
        """Return what is known of a key."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def note(self, key: str, entry: Entry | None, revision: int) -> None:
        """Keep what a key holds as of a revision, unless something newer is known."""
        known = self._known.pop(key, None)
        if known is not None and known.revision >= revision:
            entry, revision = known
        if known is not None:
            self._bytes_left += _cost(key, known)
        self._known[key] = new = Known(entry, revision)
        self._bytes_left -= _cost(key, new)
        while self._bytes_left < 0:
            self._bytes_left += _cost(*self._known.popitem(last=False))

    def note_all(self, changes: Iterable[Change]) -> None:
        """Keep what changes made of their keys."""
        for change in changes:
            entry = change.entry if isinstance(change, Put) else None
            self.note(change.key, entry, change.revision)


def _cost(key: str, known: Known) -> int:
    value = b"" if known.entry is None else known.entry.value
    return KEY_COST_BYTES + len(key) + len(value)
