"""New names and ids, of random bytes that are fetched from the system many at a time."""

from __future__ import annotations

import os
import uuid

POOL_BYTES = 4096
SUFFIX_LENGTH = 5
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so no words


class Randomness:
    """Random bytes of the system; a call of it costs more than what is done with the bytes."""

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return bytes that nobody was given before."""
        if self._at + count > len(self._pool):
            self._pool, self._at = os.urandom(max(POOL_BYTES, count)), 0
        taken = self._pool[self._at : self._at + count]
        self._at += count
        return taken


_RANDOMNESS = Randomness()


def new_uid() -> str:
    """Return an id that no other object has."""
    return str(uuid.UUID(bytes=_RANDOMNESS.take(16), version=4))


def new_suffix() -> str:
    """Return what makes a generated name one of its own."""
    letters = len(SUFFIX_LETTERS)
    bound = 256 - 256 % letters  # above it some letters would come more often than others
    suffix = ""
    while len(suffix) < SUFFIX_LENGTH:
        (number,) = _RANDOMNESS.take(1)
        if number < bound:
            suffix += SUFFIX_LETTERS[number % letters]
    return suffix
