"""A short way to a folder, because the path of a unix socket may have 107 bytes and no more.

A driver's socket is at `ROOT/plugins/NAME/dra.sock`, and names may have 63 characters. So the
folder of a node is reached by a link in the system's folder for running programs. The link is made
anew at each start: such folders are emptied when the machine starts.
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
    """No short way can be made; the text says why."""


def short_path(folder: Path) -> Path:
    """Return a path of the folder that is short enough, by a link if it must be."""
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
    """Take the link away, if there is one."""
    with suppress(FileNotFoundError):
        link_of(folder.absolute()).unlink()


def link_of(folder: Path) -> Path:
    """Return where the link of a folder is, or would be."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
    own = Path(f"/run/user/{os.getuid()}") if os.getuid() else Path("/run")
    if os.access(own, os.W_OK):
        return own / f"moor-{name}"
    return Path(tempfile.gettempdir()) / f"moor-{os.getuid()}" / name


def _check_private(folder: Path) -> None:
    """Make sure that nobody else can lead us elsewhere."""
    found = folder.stat(follow_symlinks=False)
    is_open = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if found.st_uid not in (os.getuid(), 0) or is_open or not stat.S_ISDIR(found.st_mode):
        raise ShortPathError(f"{folder}: others can write there")
