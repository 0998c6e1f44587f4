"""A cache that evicts the least recently used key first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Values by key, at most `count_max` of them and `size_max` in all sizes together."""

    def __init__(self, count_max: int, size_max: int | None = None) -> None:
        assert count_max > 0, count_max
        self.size = 0
        self._count_max = count_max
        self._size_max = size_max
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()  # most recently used last

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def get(self, key: K) -> V | None:
        """Return the value of a key and mark it as used; None if it is not cached."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Cache a value, and evict others until all bounds hold again."""
        self.discard(key)
        self._values[key] = (value, size)
        self.size += size
        while len(self._values) > self._count_max or self._is_too_large():
            _, (_, freed) = self._values.popitem(last=False)
            self.size -= freed

    def discard(self, key: K) -> None:
        """Remove a key, if it is cached."""
        gone = self._values.pop(key, None)
        if gone is not None:
            self.size -= gone[1]

    def items(self) -> list[tuple[K, V]]:
        """Return the cached keys and values, least recently used first."""
        return [(key, value) for key, (value, _) in self._values.items()]

    def _is_too_large(self) -> bool:
        return self._size_max is not None and self.size > self._size_max
