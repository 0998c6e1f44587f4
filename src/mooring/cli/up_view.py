"""What `moor up` shows: lines that stay, and below them how the cluster is doing.

Only a terminal has something below. It is drawn anew in its place, after each line that stays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from mooring.cli.output import printable

if TYPE_CHECKING:
    from mooring.cluster.overview import Overview
    from mooring.cluster.state_folder import ClusterState

ABOVE = "\x1b[{}A\x1b[J"  # go up so many lines, and clear from there


class ProgressView:
    """Lines on a terminal, or in a file."""

    def __init__(
        self,
        *,
        is_terminal: bool,
        write: Callable[[str], None] = lambda text: click.echo(text, nl=False),
    ) -> None:
        self.is_terminal = is_terminal
        self._write = write
        self._below: Sequence[str] = ()

    def line(self, text: str) -> None:
        """Write a line that stays."""
        below = self._below
        self.clear()
        self._write(f"{text}\n")
        self._draw(below)

    def show(self, lines: Sequence[str]) -> None:
        """Have these lines below, instead of those that were there."""
        if self.is_terminal and tuple(lines) != tuple(self._below):
            self.clear()
            self._draw(lines)

    def clear(self) -> None:
        """Clear the status lines."""
        if self._below:
            self._write(ABOVE.format(len(self._below)))
            self._below = ()

    def _draw(self, lines: Sequence[str]) -> None:
        # A line that is too long would take two, and be found again at the wrong place.
        columns = shutil.get_terminal_size().columns
        for each in lines:
            self._write(f"{printable(each)[: columns - 1]}\n")
        self._below = lines


def standing_lines(state: ClusterState, overview: Overview | None) -> list[str]:
    """Return the status of a cluster in a few titled lines."""
    late = [each for each in state.processes if not each.is_working]
    working = f"{len(state.processes) - len(late)} of {len(state.processes)} working"
    troubles = (f"; {each.name}: {each.trouble or 'starting'}" for each in late)
    lines = [("processes", f"{working}{''.join(troubles)}")]
    if overview is not None:
        lines += overview.lines()
        lines += [("", overview.drivers)] if overview.by_driver else []
    return ["", *(f"{name:<10} {text}" for name, text in lines)]
