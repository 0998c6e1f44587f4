"""Checks of requests, the same for every backend: bounds, and the expected revision of a key."""

from __future__ import annotations

import re

from moorage.store.contract import Entry
from moorage.store.errors import BadRequestError, ConflictError, KeyMissingError

KEY_BYTES_MAX = 2048
VALUE_BYTES_MAX = 1_500_000  # etcd accepts requests of 1.5 MiB, with the key
TTL_S_MAX = 366 * 24 * 3600

# The last code point is never in a key, so the keys below a prefix end before prefix + LAST.
LAST = "\U0010ffff"
_FORBIDDEN = re.compile(f"[\x00-\x1f\x7f\ud800-\udfff{LAST}]")


def check_key(key: str) -> None:
    """Raise BadRequestError unless the text can be a key."""
    if not key:
        raise BadRequestError("key: must not be empty")
    check_prefix(key)


def check_prefix(prefix: str) -> None:
    """Raise BadRequestError unless the text can be the beginning of a key."""
    if prefix.isascii() and prefix.isprintable() and len(prefix) <= KEY_BYTES_MAX:
        return  # as nearly always
    found = _FORBIDDEN.search(prefix)
    if found is not None:
        raise BadRequestError(f"key {prefix!r}: must not contain {found[0]!r}")
    if len(prefix.encode()) > KEY_BYTES_MAX:
        raise BadRequestError(f"key {prefix[:40]!r}…: longer than {KEY_BYTES_MAX} bytes")


def check_write(key: str, value: bytes, ttl_s: int | None) -> None:
    """Raise BadRequestError unless key, value and time to live can be written."""
    check_key(key)
    check_value(key, value)
    if ttl_s is not None and not 0 < ttl_s <= TTL_S_MAX:
        raise BadRequestError(f"{key}: a time to live of {ttl_s} s is not in 1 to {TTL_S_MAX}")


def check_value(key: str, value: bytes) -> None:
    """Raise BadRequestError if a value is too large."""
    if len(value) > VALUE_BYTES_MAX:
        raise BadRequestError(f"{key}: {len(value)} bytes are more than {VALUE_BYTES_MAX}")


def check_list(prefix: str, limit: int | None, after: str) -> None:
    """Raise BadRequestError unless the page can be listed."""
    check_prefix(prefix)
    check_prefix(after)
    if limit is not None and limit < 1:
        raise BadRequestError(f"limit: {limit} is less than 1")


def check_revision(revision: int) -> None:
    """Raise BadRequestError unless the number can be a revision."""
    if not 0 <= revision < 2**63:
        raise BadRequestError(f"revision: {revision} is not in 0 to 2^63-1")


def check_expected(current: Entry | None, key: str, expected: int) -> Entry:
    """Return the entry if it has the expected revision, or raise why the key cannot be written."""
    if current is None:
        raise KeyMissingError(key)
    if current.revision != expected:
        raise ConflictError(current, expected)
    return current
