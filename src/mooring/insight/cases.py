"""What a rule of lint is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from mooring.api.codec import Place
from mooring.insight.objects import Object
from mooring.insight.world import Stage, World


class Oddity(NamedTuple):
    """Something odd: where, what, and what to do."""

    place: Place
    message: str
    remedy: str


class Case:
    """An object, the stages of its expressions, and the world around it."""

    def __init__(self, subject: Object, world: World) -> None:
        self.subject = subject
        self.world = world
        self.stages: tuple[Stage, ...] = world.stages(subject)
        self._found: dict[Callable[[Case], Iterable[Oddity]], tuple[Oddity, ...]] = {}

    def once(self, find: Callable[[Case], Iterable[Oddity]]) -> tuple[Oddity, ...]:
        """Return what a function finds in this case, which is worked out once."""
        if find not in self._found:
            self._found[find] = tuple(find(self))
        return self._found[find]
