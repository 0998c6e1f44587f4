"""Reads lock files: packages with versions, hashes, and the packages that need them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\\n]+?))? *(?:\\|$)"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"^ +#(?: via)? +(?!via$)([A-Za-z0-9._-]+)(?: \(.*\))?$", re.MULTILINE)


class Pin(NamedTuple):
    """A package of a lock file."""

    name: str
    version: str
    marker: str
    sha256s: tuple[str, ...]
    needed_by: tuple[str, ...]


def read_lock(path: Path) -> dict[str, Pin]:
    """Return the packages of a lock file by name."""
    text = path.read_text(encoding="utf-8")
    return {pin.name: pin for pin in map(_pin, _ENTRY.split(text)[1:])}


def _pin(entry: str) -> Pin:
    found = _PIN.match(entry)
    if found is None:
        raise ValueError(f"no pinned version: {entry.splitlines()[0]!r}")
    return Pin(
        found["name"].lower(),
        found["version"],
        found["marker"] or "",
        tuple(_HASH.findall(entry)),
        tuple(_VIA.findall(entry)),
    )
