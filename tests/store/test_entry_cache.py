"""The cache of recently used entries."""

from __future__ import annotations

from moorage.store.contract import Deletion, Entry, Put
from moorage.store.sqlite.store import KEY_COST_BYTES, CachedEntry, EntryCache


def entry(key: str, revision: int, value: bytes = b"v") -> Entry:
    return Entry(key, value, 1, revision)


def test_a_write_is_cached() -> None:
    cache = EntryCache()
    cache.add_changes([Put(entry("/a", 1), None), Put(entry("/a", 2), entry("/a", 1))])
    assert cache.find("/a") == CachedEntry(entry("/a", 2), 2)


def test_a_deletion_is_cached() -> None:
    cache = EntryCache()
    cache.add_changes([Put(entry("/a", 1), None), Deletion(entry("/a", 1), 2)])
    assert cache.find("/a") == CachedEntry(None, 2)


def test_an_older_change_does_not_replace_a_newer_read() -> None:
    cache = EntryCache()
    cache.add("/a", None, 3)  # read after the change of revision 3, which is published last
    cache.add_changes([Put(entry("/a", 2), None)])
    assert cache.find("/a") == CachedEntry(None, 3)
    cache.add_changes([Put(entry("/a", 4), None)])
    assert cache.find("/a") == CachedEntry(entry("/a", 4), 4)


def test_the_least_recently_used_key_is_evicted() -> None:
    cost = KEY_COST_BYTES + len("/a") + 1
    cache = EntryCache(bytes_max=2 * cost)
    cache.add("/a", entry("/a", 1), 1)
    cache.add("/b", entry("/b", 2), 2)
    cache.find("/a")
    cache.add("/c", entry("/c", 3), 3)
    assert cache.find("/b") is None
    assert cache.find("/a") is not None
    assert cache.find("/c") is not None


def test_an_entry_larger_than_the_cache_is_not_kept() -> None:
    cache = EntryCache(bytes_max=KEY_COST_BYTES)
    cache.add("/a", entry("/a", 1, b"x" * 100), 1)
    assert cache.find("/a") is None
