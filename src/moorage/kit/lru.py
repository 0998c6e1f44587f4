"""A cache that evicts the least recently used key first; several threads may use one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from math import inf
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Values by key, at most `count_max` of them and `size_max` in all sizes together.

    A value is never None.
    """

    def __init__(self, count_max: int, size_max: int | None = None) -> None:
        assert count_max > 0, count_max
        self.size = 0
        self._count_max = count_max
        self._size_max = inf if size_max is None else size_max
        self._values: OrderedDict[K, V] = OrderedDict()  # most recently used last
        self._sizes: dict[K, int] = {}  # of values that have one
        self._changing = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def get(self, key: K) -> V | None:
        """Return the value of a key and mark it as used; None if it is not cached."""
        value = self._values.get(key)
        if value is not None:
            try:
                self._values.move_to_end(key)
            except KeyError:
                return value  # Another thread has just evicted it.
        return value

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Cache a value, and evict others until all bounds hold again."""
        with self._changing:
            values = self._values
            self._remove(key)
            values[key] = value
            if size:
                self._sizes[key] = size
                self.size += size
            while len(values) > self._count_max or self.size > self._size_max:
                oldest, _ = values.popitem(last=False)
                self.size -= self._sizes.pop(oldest, 0)

    def discard(self, key: K) -> None:
        """Remove a key, if it is cached."""
        with self._changing:
            self._remove(key)

    def _remove(self, key: K) -> None:
        if self._values.pop(key, None) is not None:
            self.size -= self._sizes.pop(key, 0)

    def items(self) -> list[tuple[K, V]]:
        """Return the cached keys and values, least recently used first."""
        return list(self._values.items())
