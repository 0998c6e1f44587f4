"""Whether the hot modules of this installation are compiled: an option of building the wheel."""

from __future__ import annotations

from importlib.util import find_spec

EXTENSION = "mooring__mypyc"  # that has the code of all compiled modules


def is_compiled() -> bool:
    """Return whether this installation has compiled modules."""
    return find_spec(EXTENSION) is not None
