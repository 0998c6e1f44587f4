"""Names and hashes of what controllers make, of Kubernetes' form.

A name that would be random in Kubernetes follows here from what is there: whoever plans twice from
the same copy plans the same names, so that a copy that is behind never makes too much. The hash of
a template is ours: Kubernetes' follows from how Go prints its structs. Templates are compared, not
hashes, so sets made by either are found by both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from mooring.api.codec import to_tree

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by chance
NAME_MAX = 253
_SUFFIX_LENGTH = 5
_PREFIX_MAX = 63 - _SUFFIX_LENGTH


def fnv32a(data: bytes) -> int:
    """Return the FNV-1a hash of 32 bits."""
    number = 0x811C9DC5
    for byte in data:
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return number


def safe_text(text: str) -> str:
    """Return a text of the same length that can stand in a name."""
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)


def template_hash(template: Any, collisions: int | None = None) -> str:
    """Return what tells a template from others; with collisions, other hashes of it."""
    data = msgspec.json.encode(to_tree(template), order="sorted")
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_text(str(fnv32a(data)))


def hashed_name(name: str, suffix: str) -> str:
    """Return a name and a suffix, the name cut where both would be too long."""
    return f"{name[: NAME_MAX - 1 - len(suffix)]}-{suffix}"


def fresh_names(prefix: str, seed: Iterable[str], taken: Any) -> Iterator[str]:
    """Yield names that nobody has; the same seed gives the same ones. `taken(name)` tells."""
    start = hashlib.sha256("\0".join(seed).encode("utf-8", "replace"))
    number = 0
    while True:
        digest = start.copy()
        digest.update(number.to_bytes(8, "little"))
        drawn = (ALPHABET[byte % len(ALPHABET)] for byte in digest.digest()[:_SUFFIX_LENGTH])
        name = prefix[:_PREFIX_MAX] + "".join(drawn)
        if not taken(name):
            yield name
        number += 1
