"""NVML: NVIDIA's library, which knows what sysfs does not.

`nvidia-ml-py` binds it. It is loaded when a driver is asked for the first time, and what stands in
for it in tests has the functions, constants and structures of that module.
"""

from __future__ import annotations

from typing import Any

Library = Any  # the module pynvml, or what has its names
Handle = Any  # of a GPU, or of a part of one


class NoLibraryError(Exception):
    """There is nothing to ask here; the text says why."""


def load() -> Library:
    """Return the library, ready to be asked, or raise NoLibraryError."""
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        raise NoLibraryError(
            "nvidia-ml-py is not installed; it comes with mooring[drivers]"
        ) from None
    return started(pynvml)


def started(library: Library) -> Library:
    """Return the library after its start, or raise NoLibraryError."""
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise NoLibraryError(f"no NVIDIA driver here ({said(error)})") from None
    return library


def said(error: Exception) -> str:
    """Return what the library says of an error."""
    return str(error) or type(error).__name__


def as_text(value: str | bytes) -> str:
    """Return a text of the library; older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
