"""The order in which Go's `sort.Slice` leaves things.

It is not stable: what compares as equal comes out in an order that only the algorithm explains,
and a comparison that contradicts itself (NaN) still yields some order. So here is the algorithm,
a pattern-defeating quicksort (https://arxiv.org/abs/2106.05123), with Go's constants:

1. Twelve elements or fewer: insertion sort.
2. After too many bad partitions: heap sort.
3. After a bad partition: swap three elements in the middle with pseudo-random others.
4. Choose a pivot, the median of three, or from 50 elements on of three medians; the swaps that
   this takes tell whether the elements seem to rise or to fall. Those that fall are reversed.
5. What seems to rise gets a chance to be finished by a few insertions.
6. If the pivot equals the element before, set apart what is equal to it, and go on with the rest.
7. Else partition, sort the smaller side and go on with the larger one.

# range [a, b): the elements still to be sorted
# swaps: how many of the comparisons for the pivot found the larger element first
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_INSERTION_MAX: Final = 12
_NINTHER_MIN: Final = 50
_FALLING_SWAPS: Final = 12
_SHIFTS_MAX: Final = 5
_SHIFTING_MIN: Final = 50
_SCATTER_MIN: Final = 8
_WORD: Final = 2**64 - 1


def go_order(count: int, is_less: Callable[[int, int], bool]) -> list[int]:
    """Return the numbers below `count` in the order that Go's sort gives them."""
    sorting = _Sorting(count, is_less)
    sorting.sort(0, count, count.bit_length())
    return sorting.order


class _Sorting:
    def __init__(self, count: int, is_less: Callable[[int, int], bool]) -> None:
        self.order = list(range(count))
        self._is_less = is_less

    def sort(self, a: int, b: int, bad_partitions_left: int) -> None:
        was_balanced = was_partitioned = True
        while b - a > _INSERTION_MAX:
            length = b - a
            if bad_partitions_left == 0:
                self._heap_sort(a, b)
                return
            if not was_balanced:
                self._scatter(a, b)
                bad_partitions_left -= 1
            pivot, rises = self._choose_pivot(a, b)
            if was_balanced and was_partitioned and rises and self._finish_rising(a, b):
                return
            if a > 0 and not self._less(a - 1, pivot):
                a = self._partition_equal(a, b, pivot)
                continue
            middle, was_partitioned = self._partition(a, b, pivot)
            was_balanced = min(middle - a, b - middle) >= length // 8
            if middle - a < b - middle:
                self.sort(a, middle, bad_partitions_left)
                a = middle + 1
            else:
                self.sort(middle + 1, b, bad_partitions_left)
                b = middle
        self._insertion_sort(a, b)

    # --- parts --------------------------------------------------------------------------

    def _less(self, i: int, j: int) -> bool:
        return self._is_less(self.order[i], self.order[j])

    def _swap(self, i: int, j: int) -> None:
        order = self.order
        order[i], order[j] = order[j], order[i]

    def _insertion_sort(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            self._shift_left(i, a)

    def _shift_left(self, i: int, first: int) -> None:
        while i > first and self._less(i, i - 1):
            self._swap(i, i - 1)
            i -= 1

    def _shift_right(self, i: int, b: int) -> None:
        while i < b and self._less(i, i - 1):
            self._swap(i, i - 1)
            i += 1

    def _heap_sort(self, a: int, b: int) -> None:
        length = b - a
        for root in reversed(range((length + 1) // 2)):
            self._sift_down(root, length, a)
        for last in reversed(range(length)):
            self._swap(a, a + last)
            self._sift_down(0, last, a)

    def _sift_down(self, root: int, length: int, first: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self._less(first + child, first + child + 1):
                child += 1
            if not self._less(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child

    def _scatter(self, a: int, b: int) -> None:
        length = b - a
        if length < _SCATTER_MIN:
            return
        random = length
        middle = a + length // 4 * 2
        for i in (middle - 1, middle, middle + 1):
            random = _xorshift(random)
            other = random & ((1 << length.bit_length()) - 1)
            self._swap(i, a + (other - length if other >= length else other))

    def _choose_pivot(self, a: int, b: int) -> tuple[int, bool]:
        """Return where the pivot is, and whether the range seems to rise, reversed if need be."""
        quarter = (b - a) // 4
        candidates = (a + quarter, a + 2 * quarter, a + 3 * quarter)
        swaps = 0
        if b - a >= _NINTHER_MIN:
            medians = [self._median(i - 1, i, i + 1) for i in candidates]
            candidates = (medians[0][0], medians[1][0], medians[2][0])
            swaps = sum(more for _, more in medians)
        pivot, more = self._median(*candidates)
        swaps += more
        if swaps == _FALLING_SWAPS:
            self.order[a:b] = self.order[a:b][::-1]
            return b - 1 - (pivot - a), True
        return pivot, swaps == 0

    def _median(self, i: int, j: int, k: int) -> tuple[int, int]:
        """Return which of three is the median, and how many swaps it took to see it."""
        swaps = 0
        if self._less(j, i):
            i, j, swaps = j, i, 1
        if self._less(k, j):
            j, swaps = k, swaps + 1
        if self._less(j, i):
            j, swaps = i, swaps + 1
        return j, swaps

    def _finish_rising(self, a: int, b: int) -> bool:
        """Return whether a few insertions sorted the range."""
        i = a + 1
        for _ in range(_SHIFTS_MAX):
            while i < b and not self._less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _SHIFTING_MIN:
                return False
            self._swap(i, i - 1)
            if i - a >= 2:
                self._shift_left(i - 1, 0)
            self._shift_right(i + 1, b)
        return False

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        """Return where the pivot went between smaller and other, and whether nothing moved."""
        self._swap(a, pivot)
        i, j = a + 1, b - 1
        nothing_moved = True
        while True:
            while i <= j and self._less(i, a):
                i += 1
            while i <= j and not self._less(j, a):
                j -= 1
            if i > j:
                break
            self._swap(i, j)
            nothing_moved = False
            i, j = i + 1, j - 1
        self._swap(j, a)
        return j, nothing_moved

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        """Return where what is larger than the pivot begins, after what equals it."""
        self._swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self._less(a, i):
                i += 1
            while i <= j and self._less(a, j):
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i, j = i + 1, j - 1


def _xorshift(number: int) -> int:
    number ^= number << 13 & _WORD
    number ^= number >> 7
    return number ^ (number << 17 & _WORD)
