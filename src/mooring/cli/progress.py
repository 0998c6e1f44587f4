"""What is shown while something takes long."""

from __future__ import annotations

import sys
import time

import click

PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.2


class Progress:
    """A counter on the terminal, once the work takes long enough to wonder."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._count = 0
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._width = 0

    def tick(self, source: str) -> None:
        """Count an object."""
        self._count += 1
        if not self._is_shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROGRESS_EVERY_S
        text = f"{self._count:,} objects … {source}"[:79]
        click.echo("\r" + text.ljust(self._width), err=True, nl=False)
        self._width = len(text)

    def clear(self) -> None:
        """Take the counter off the terminal."""
        if self._width:
            click.echo("\r" + " " * self._width + "\r", err=True, nl=False)
