from __future__ import annotations

from mooring.kit.lru import LRU


def test_the_least_recently_used_key_is_evicted_first() -> None:
    cache: LRU[str, int] = LRU(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.get("b") is None
    assert cache.items() == [("a", 1), ("c", 3)]
    assert "c" in cache
    assert list(cache) == ["a", "c"]


def test_sizes_are_bounded_too() -> None:
    cache: LRU[str, bytes] = LRU(10, size_max=10)
    cache.put("a", b"", 6)
    cache.put("b", b"", 6)
    assert (cache.size, list(cache)) == (6, ["b"])
    cache.put("b", b"", 2)
    assert cache.size == 2
    cache.put("c", b"", 11)
    assert (cache.size, len(cache)) == (0, 0)


def test_a_discarded_key_is_gone() -> None:
    cache: LRU[str, int] = LRU(2)
    cache.put("a", 1)
    cache.discard("a")
    cache.discard("a")
    assert cache.get("a") is None
