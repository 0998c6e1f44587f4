"""Short paths for unix sockets, whose paths have at most 107 bytes.

A driver's socket is `ROOT/plugins/NAME/dra.sock`, where NAME has up to 63 characters. So the root
directory of a node is reached by a symlink in the system's runtime directory, which is recreated on
each start, because such directories are emptied at boot.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

LENGTH_MAX = 26  # leaves room for the longest name of a driver


class ShortPathError(Exception):
    """No short path can be created, with the reason."""


def short_path(folder: Path) -> Path:
    """Return a path of the folder that is short enough, through a symlink if necessary."""
    folder = folder.absolute()
    if len(os.fsencode(folder)) <= LENGTH_MAX:
        return folder
    try:
        link = link_of(folder)
        link.parent.mkdir(mode=0o700, exist_ok=True)
        _check_private(link.parent)
        if not link.is_symlink() or Path(os.readlink(link)) != folder:
            remove_short_path(folder)
            link.symlink_to(folder)
    except OSError as error:
        raise ShortPathError(f"{error.filename}: {error.strerror}") from None
    return link


def remove_short_path(folder: Path) -> None:
    """Remove the symlink, if there is one."""
    with suppress(FileNotFoundError):
        link_of(folder.absolute()).unlink()


def link_of(folder: Path) -> Path:
    """Return the path of a folder's symlink."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
    own = Path(f"/run/user/{os.getuid()}") if os.getuid() else Path("/run")
    if os.access(own, os.W_OK):
        return own / f"moor-{name}"
    return Path(tempfile.gettempdir()) / f"moor-{os.getuid()}" / name


def _check_private(folder: Path) -> None:
    """Raise ShortPathError if others could replace the symlink."""
    found = folder.stat(follow_symlinks=False)
    is_open = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if found.st_uid not in (os.getuid(), 0) or is_open or not stat.S_ISDIR(found.st_mode):
        raise ShortPathError(f"{folder}: others can write there")
