"""What is kept in memory of the keys that were lately used."""

from __future__ import annotations

from mooring.store.contract import Deletion, Entry, Put
from mooring.store.sqlite.recent import KEY_COST_BYTES, Known, Recent


def entry(key: str, revision: int, value: bytes = b"v") -> Entry:
    return Entry(key, value, 1, revision)


def test_what_was_written_is_known() -> None:
    recent = Recent()
    recent.note_all([Put(entry("/a", 1), None), Put(entry("/a", 2), entry("/a", 1))])
    assert recent.find("/a") == Known(entry("/a", 2), 2)


def test_that_a_key_was_deleted_is_known() -> None:
    recent = Recent()
    recent.note_all([Put(entry("/a", 1), None), Deletion(entry("/a", 1), 2)])
    assert recent.find("/a") == Known(None, 2)


def test_a_read_that_saw_more_than_was_told_is_not_undone_by_what_is_told_later() -> None:
    recent = Recent()
    recent.note("/a", None, 3)  # read after the change of revision 3, which is told last
    recent.note_all([Put(entry("/a", 2), None)])
    assert recent.find("/a") == Known(None, 3)
    recent.note_all([Put(entry("/a", 4), None)])
    assert recent.find("/a") == Known(entry("/a", 4), 4)


def test_what_was_used_last_stays_when_room_is_short() -> None:
    cost = KEY_COST_BYTES + len("/a") + 1
    recent = Recent(bytes_max=2 * cost)
    recent.note("/a", entry("/a", 1), 1)
    recent.note("/b", entry("/b", 2), 2)
    recent.find("/a")
    recent.note("/c", entry("/c", 3), 3)
    assert recent.find("/b") is None
    assert recent.find("/a") is not None
    assert recent.find("/c") is not None


def test_one_that_does_not_fit_at_all_is_not_kept() -> None:
    recent = Recent(bytes_max=KEY_COST_BYTES)
    recent.note("/a", entry("/a", 1, b"x" * 100), 1)
    assert recent.find("/a") is None
