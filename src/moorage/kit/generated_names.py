"""Random uids and name suffixes, from random bytes fetched in bulk from the system."""

from __future__ import annotations

import os

POOL_BYTES = 4096
SUFFIX_LENGTH = 5
# Version 4 and the variant of RFC 9562 in a UUID, and all bits but theirs.
_VERSION = 0x4000_8000_0000_0000_0000
_NOT_VERSION = ~(0xF000_C000_0000_0000_0000)
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
    number = int.from_bytes(_RANDOMNESS.take(16), "big") & _NOT_VERSION | _VERSION
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_suffix() -> str:
    """Return five random characters, as Kubernetes appends them to `generateName`."""
    letters = len(SUFFIX_LETTERS)
    bound = 256 - 256 % letters  # above it some letters would be more frequent than others
    suffix = ""
    while len(suffix) < SUFFIX_LENGTH:
        for number in _RANDOMNESS.take(SUFFIX_LENGTH - len(suffix)):
            if number < bound:
                suffix += SUFFIX_LETTERS[number % letters]
    return suffix
