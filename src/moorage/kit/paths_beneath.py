"""Paths below a folder of ours, made of untrusted names.

    descriptor = open_beneath(pods, "uid/volumes/conf/key", os.O_RDONLY)

An untrusted name may be `..` or `/etc`, and whoever can write below the folder can put a symbolic
link there at any moment. So a path is never joined to the folder as text. `open_beneath` opens it
part by part, each part in the folder that was just opened, and follows no link. The descriptor it
returns stays valid whatever is renamed or linked afterwards.

This module imports only a little of the standard library, because the shim of containers uses it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4095
_PATH_ONLY = getattr(os, "O_PATH", 0)  # only Linux has it: elsewhere, nothing here is called
_TEMPORARY = "..new"  # no key of a ConfigMap or Secret begins like this

Root = str | os.PathLike[str] | int  # a path of ours, or the descriptor of a folder


class UnsafePathError(ValueError):
    """A name or path leaves its folder; the text names it and says why."""


def check_name(name: str) -> str:
    """Return the name if a file can have it, or raise UnsafePathError."""
    fact = _fault_of(name)
    if fact:
        raise UnsafePathError(f"{name[:128]!r} cannot be the name of a file: {fact}")
    return name


def _fault_of(name: str) -> str:
    if name in ("", ".", ".."):
        return "it is empty" if not name else "it names a folder that is already there"
    if "/" in name:
        return "it contains '/'"
    if any(ord(each) < 32 or ord(each) == 127 for each in name):
        return "it contains a control character"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    return f"it has {size} bytes, at most {NAME_BYTES_MAX} are allowed" * (size > NAME_BYTES_MAX)


def parts_of(path: str) -> tuple[str, ...]:
    """Split a relative path into names, or raise UnsafePathError.

    Empty parts and `.` are dropped, as in Kubernetes; `..` is an error, not resolved.
    """
    if path.startswith("/"):
        raise UnsafePathError(f"{path[:128]!r} must be a relative path")
    if len(path) > PATH_BYTES_MAX:
        raise UnsafePathError(
            f"{path[:128]!r}… has {len(path)} characters, at most {PATH_BYTES_MAX}"
        )
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise UnsafePathError(f"{path[:128]!r} must not contain '..'")
    for part in parts:
        check_name(part)
    return parts


def open_beneath(
    root: Root, path: str, flags: int = _PATH_ONLY, *, mode: int = 0o600, folder_mode: int = -1
) -> int:
    """Open a path below a folder and return its descriptor; raise UnsafePathError or OSError.

    With a `folder_mode`, missing parent folders are created, and so is the last part if `flags` has
    O_DIRECTORY. A symbolic link anywhere in the path is an error (ELOOP).
    """
    parts = parts_of(path)
    folder = _opened(root)
    try:
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            if folder_mode >= 0 and (not is_last or flags & os.O_DIRECTORY):
                _make_folder(folder, part, folder_mode)
            opened = _open_part(
                folder, part, flags if is_last else os.O_PATH | os.O_DIRECTORY, mode
            )
            os.close(folder)
            folder = opened
        if not parts:
            opened = os.open(".", flags | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = opened
    except OSError as error:
        os.close(folder)
        raise OSError(error.errno, error.strerror, path) from None
    return folder


def _opened(root: Root) -> int:
    if isinstance(root, int):
        return os.dup(root)
    return os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _make_folder(folder: int, name: str, mode: int) -> None:
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fchmod(made, mode)  # whatever our umask is
    finally:
        os.close(made)


def _open_part(folder: int, name: str, flags: int, mode: int) -> int:
    try:
        opened = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
    except NotADirectoryError:
        if _is_link(folder, name):
            raise OSError(errno.ELOOP, "a symbolic link is in the way", name) from None
        raise
    # O_PATH opens a link itself instead of refusing it.
    if flags & os.O_PATH and stat.S_ISLNK(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.ELOOP, "a symbolic link is in the way", name)
    return opened


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


@contextmanager
def folder_beneath(root: Root, path: str, *, folder_mode: int = -1) -> Iterator[int]:
    """Open a folder below a folder, and create it if `folder_mode` is set."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    descriptor = open_beneath(root, path, flags, folder_mode=folder_mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_beneath(
    root: Root, path: str, data: bytes, *, mode: int, folder_mode: int = 0o755
) -> None:
    """Replace a file below a folder, so that readers see the old content or the new one."""
    *parents, name = parts_of(path)
    with folder_beneath(root, "/".join(parents), folder_mode=folder_mode) as folder:
        _unlink(folder, _TEMPORARY)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(open_beneath(folder, _TEMPORARY, flags, mode=mode), "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever our umask is
            file.write(data)
        os.rename(_TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)


def remove_beneath(root: Root, name: str) -> None:
    """Remove a folder and everything in it, without following links.

    Two open descriptors suffice for a tree of any depth: nested folders are moved up first.
    """
    check_name(name)
    try:
        folder = open_beneath(root, name, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        _empty(folder)
    finally:
        os.close(folder)
    parent = _opened(root)
    try:
        os.rmdir(name, dir_fd=parent)
    finally:
        os.close(parent)


def _empty(folder: int) -> None:
    """Remove as much as possible from a folder; raise the first OSError."""
    faults: list[OSError] = []
    pending = os.listdir(folder)
    taken = set(pending)
    while pending:
        name = pending.pop()
        try:
            if _is_folder(folder, name):
                pending += _raise_folders(folder, name, taken, faults)
                os.rmdir(name, dir_fd=folder)
            else:
                _unlink(folder, name)
        except OSError as error:
            faults[:] = [*faults, error][:1]
    if faults:
        raise faults[0]


def _raise_folders(outer: int, name: str, taken: set[str], faults: list[OSError]) -> Iterator[str]:
    """Remove the files of a folder and move its folders to the outer one; yield their names."""
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
    try:
        with suppress(OSError):
            os.fchmod(inner, 0o700)  # its owner may have made it read-only
        for each in os.listdir(inner):
            try:
                if _is_folder(inner, each):
                    new = next(n for n in (f"..{i}" for i in count(len(taken))) if n not in taken)
                    os.rename(each, new, src_dir_fd=inner, dst_dir_fd=outer)
                    taken.add(new)
                    yield new
                else:
                    _unlink(inner, each)
            except OSError as error:
                faults[:] = [*faults, error][:1]
    finally:
        os.close(inner)


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
