"""How long reading a quantity takes, when its text was seen before and when it was not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from timeit import repeat

from moorage.api.quantity import MEMO_SIZE, Quantity

FORMS = ["{}", "{}m", "{}k", "{}Mi", "{}Gi", "{}.5", "{}e3", "{}Ei"]
ROUNDS = 5


def main() -> None:
    """Print nanoseconds per parse for the common forms, and the size of one quantity."""
    print(f"{'form':10} {'remembered':>12} {'new':>12}   ns per parse")
    for form in FORMS:
        # More texts than the memo holds, read in turn: every one of them is new each time.
        texts = [form.format(number) for number in range(1, 2 * MEMO_SIZE)]
        remembered = _nanoseconds(texts[: MEMO_SIZE // 2])
        print(f"{form.format(10):10} {remembered:12.0f} {_nanoseconds(texts):12.0f}")
    print(f"one quantity: {sys.getsizeof(Quantity.parse('10Gi'))} bytes")


def _nanoseconds(texts: Sequence[str]) -> float:
    """Return the least time per text over some rounds; the first fills the memo."""

    def read_all() -> None:
        for text in texts:
            Quantity.parse(text)

    return min(repeat(read_all, number=1, repeat=ROUNDS)) / len(texts) * 1e9
