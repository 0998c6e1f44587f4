"""Objects that were seen to go: nobody need ask the server for them."""

from __future__ import annotations

from collections import OrderedDict

VANISHED_MAX = 500


class Vanished:
    """The uids of objects that were seen to go; the oldest are forgotten first."""

    def __init__(self, most: int = VANISHED_MAX) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()
        self._most = most

    def note(self, uid: str) -> None:
        """Note that the one with this uid is gone for ever."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > self._most:
            self._uids.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Note that it is there after all: a server can be brought back to what it was."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: object) -> bool:
        return uid in self._uids
