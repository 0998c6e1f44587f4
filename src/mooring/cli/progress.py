"""What is shown while something takes long: one line on a terminal, which overwrites itself."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

AFTER_S = 1.0
EVERY_S = 0.2
WIDTH_MAX = 79
CLEAR = "\r\x1b[K"


class Progress:
    """Tells how far work is, once it takes long enough to wonder; nothing stays behind."""

    def __init__(self, what: str = "objects") -> None:
        self._what = what
        self._is_watched = sys.stderr.isatty()
        self._next_s = time.monotonic() + AFTER_S
        self._count = 0
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """Tell how much is done, of how much."""
        self._show(f"{self._what}: {done:,} of {total:,}")

    def tick(self, source: str) -> None:
        """Count one thing more of who knows how many."""
        self._count += 1
        self._show(f"{self._count:,} {self._what} … {source}")

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._is_shown:
            print(CLEAR, end="", file=sys.stderr, flush=True)
            self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line away, also if the work was stopped."""
        self.clear()

    def _show(self, text: str) -> None:
        if self._is_watched and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            print(f"{CLEAR}{text[:WIDTH_MAX]}", end="", file=sys.stderr, flush=True)
            self._is_shown = True
