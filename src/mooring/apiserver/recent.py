"""What was made lately and may be wanted again: bounded in number and in bytes."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key; those that came first go first."""

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self.bytes = 0
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._values: dict[K, V] = {}
        self._sizes: deque[tuple[K, int]] = deque()  # oldest first

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return a value, if it is still there."""
        return self._values.get(key)

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value that is not there, and let go of the oldest ones if there are too many."""
        if key in self._values:
            return
        self._values[key] = value
        self._sizes.append((key, size))
        self.bytes += size
        while len(self._sizes) > self._count_max or self.bytes > self._bytes_max:
            oldest, freed = self._sizes.popleft()
            del self._values[oldest]
            self.bytes -= freed
