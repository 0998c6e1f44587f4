from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from moorage.kit.lru import LRU


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


class Vanishing:
    """A key that another thread evicts between two looks at it."""

    def __init__(self) -> None:
        self.cache: LRU[object, str] = LRU(2)
        self._looks_left = -1
        self.cache.put(self, "value")
        self.cache.put("newer", "value")
        self._looks_left = 2

    def __hash__(self) -> int:
        self._looks_left -= 1
        if self._looks_left == 0:
            self.cache.discard(self)
        return 1


def test_a_key_that_goes_while_it_is_looked_up_has_its_value() -> None:
    key = Vanishing()
    assert key.cache.get(key) == "value"
    assert key.cache.get(key) is None


@pytest.fixture
def hasty_threads() -> Iterator[ThreadPoolExecutor]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(3) as pool:
        yield pool
    sys.setswitchinterval(before)


def test_threads_that_share_a_cache_keep_its_bounds(hasty_threads: ThreadPoolExecutor) -> None:
    cache: LRU[int, int] = LRU(64, size_max=1000)

    def use(seed: int) -> None:
        random = Random(seed)
        for _ in range(3000):
            key = random.randrange(200)
            if cache.get(key) is None or random.random() < 0.3:
                cache.put(key, key, 40)
            if random.random() < 0.1:
                cache.discard(random.randrange(200))

    for done in [hasty_threads.submit(use, seed) for seed in range(3)]:
        done.result()
    assert cache.size == 40 * len(cache)
    assert cache.size <= 1000
