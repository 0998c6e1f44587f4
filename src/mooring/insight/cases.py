"""What a rule of lint is given, and what it gives back."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.codec import Place
from mooring.insight.objects import Object
from mooring.insight.world import Stage, World


class Oddity(NamedTuple):
    """Something odd: where, what, and what to do."""

    place: Place
    message: str
    remedy: str


class Case(NamedTuple):
    """An object, the stages of its expressions, and the world around it."""

    subject: Object
    world: World
    stages: tuple[Stage, ...]
