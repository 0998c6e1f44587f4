"""Random uids and name suffixes, from random bytes fetched in bulk from the system."""

from __future__ import annotations

import os
import uuid

POOL_BYTES = 4096
SUFFIX_LENGTH = 5
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so no words


class Randomness:
    """Random bytes, fetched in bulk: a system call costs more than what the bytes are used for."""

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return bytes that were never returned before."""
        if self._at + count > len(self._pool):
            self._pool, self._at = os.urandom(max(POOL_BYTES, count)), 0
        taken = self._pool[self._at : self._at + count]
        self._at += count
        return taken


_RANDOMNESS = Randomness()


def new_uid() -> str:
    """Return a random UUID."""
    return str(uuid.UUID(bytes=_RANDOMNESS.take(16), version=4))


def new_suffix() -> str:
    """Return five random characters, as Kubernetes appends them to `generateName`."""
    letters = len(SUFFIX_LETTERS)
    bound = 256 - 256 % letters  # above it some letters would be more frequent than others
    suffix = ""
    while len(suffix) < SUFFIX_LENGTH:
        (number,) = _RANDOMNESS.take(1)
        if number < bound:
            suffix += SUFFIX_LETTERS[number % letters]
    return suffix
