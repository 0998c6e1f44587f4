"""How far long work is: one line on standard error that overwrites itself, on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

EVERY_S = 0.1
CLEAR = "\r\x1b[K"


class Progress:
    """Counts work that is done; nothing is shown of work that is done at once."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_watched = sys.stderr.isatty()
        self._next_s = time.monotonic() + EVERY_S
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done, unless that was shown just now."""
        if self._is_watched and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            self._is_shown = True
            print(f"\r{self._what}: {done:,} of {total:,}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line away, also if the work was stopped."""
        if self._is_shown:
            print(CLEAR, end="", file=sys.stderr, flush=True)
