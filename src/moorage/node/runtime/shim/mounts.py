"""Mounts of a container, made in its own mount namespace: the host sees none of them.

A mount point that does not exist is made without touching the host:

1. Find the deepest existing folder on its path.
2. Put a tmpfs over that folder, and bind-mount everything that was in the folder into it. Old
   content is still the host's; new entries in that one folder are the container's alone. For `/`
   the tmpfs becomes the root.
3. But a mount point within another mount of the container, such as a volume, is made in it, as
   every runtime does.

Sources are opened before anything is mounted, since a mount may hide them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from moorage.kit import paths_beneath
from moorage.node.runtime.shim import linux
from moorage.node.runtime.shim.linux import (
    MS_BIND,
    MS_MOVE,
    MS_PRIVATE,
    MS_REC,
    MS_REMOUNT,
    MS_SLAVE,
    MS_UNBINDABLE,
)
from moorage.node.runtime.shim.protocol import MountLaunch

T = TypeVar("T")

ENTRIES_MAX = 4096  # of a folder that a tmpfs covers
_FLAGS = {
    "ro": linux.MS_RDONLY,
    "nosuid": linux.MS_NOSUID,
    "nodev": linux.MS_NODEV,
    "noexec": linux.MS_NOEXEC,
    "noatime": linux.MS_NOATIME,
    "nodiratime": linux.MS_NODIRATIME,
    "relatime": linux.MS_RELATIME,
}
_READ_ONLY_ALL = {"rro", "rro-if-possible"}  # read-only with all mounts within it
_FROM_HOST = {"slave", "rslave"}  # the host's later mounts appear
_IGNORED = {"rw", "bind", "rbind", "suid", "dev", "exec", "private", "rprivate"}
_IGNORED |= _FROM_HOST | _READ_ONLY_ALL
# Restrictions of a mount must stay in a user namespace, or the kernel refuses.
_KEPT = {
    os.ST_RDONLY: linux.MS_RDONLY,
    os.ST_NOSUID: linux.MS_NOSUID,
    os.ST_NODEV: linux.MS_NODEV,
    os.ST_NOEXEC: linux.MS_NOEXEC,
    os.ST_NOATIME: linux.MS_NOATIME,
    os.ST_NODIRATIME: linux.MS_NODIRATIME,
    os.ST_RELATIME: linux.MS_RELATIME,
}


class MountError(Exception):
    """A mount that cannot be made; the text says which and why."""


def separate(*, is_root: bool) -> None:
    """Enter a new mount namespace that still receives the host's later mounts."""
    if is_root:
        linux.unshare(linux.CLONE_NEWNS)
    else:
        user, group = os.getuid(), os.getgid()
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUSER)
        _put("/proc/self/setgroups", "deny")
        _put("/proc/self/uid_map", f"{user} {user} 1")
        _put("/proc/self/gid_map", f"{group} {group} 1")
    linux.mount("none", "/", flags=MS_REC | MS_SLAVE)


class _Planned(NamedTuple):
    """A mount whose source is open, and the real path of its mount point."""

    mount: MountLaunch
    source: str
    is_folder: bool
    target: str

    def is_within(self, other: _Planned) -> bool:
        return self.target.startswith(other.target.rstrip("/") + "/")


def make(mounts: tuple[MountLaunch, ...], *, staging: str) -> None:
    """Make all mounts, outer folders first, or raise MountError.

    `staging` is an empty folder that is mounted over for a while.
    """
    ordered = sorted(mounts, key=lambda mount: mount.target.rstrip("/").count("/"))
    planned = [_attempt(each, _plan, each) for each in ordered]
    private: set[int] = set()
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for index, each in enumerate(planned):
        if not any(each.is_within(outer) for outer in planned[:index]):
            _attempt(each.mount, _prepare, each, private, staging)
    for each in planned:
        _attempt(each.mount, _mount, each)
    if not os.path.samestat(os.fstat(root), os.stat("/")):
        _leave(root)


def _attempt(mount: MountLaunch, call: Callable[..., T], *arguments: object) -> T:
    """Return the result of a call, or raise MountError that names the mount."""
    try:
        return call(*arguments)
    except OSError as error:
        source = "/".join(filter(None, (mount.source, mount.within)))
        place = f"{source or mount.kind} at {mount.target}"
        about = f" ({error.filename})" if error.filename not in (None, mount.target) else ""
        raise MountError(f"cannot mount {place}: {error.strerror}{about}") from None


def _plan(mount: MountLaunch) -> _Planned:
    target = os.path.realpath(mount.target)
    if mount.kind not in ("", "bind"):
        return _Planned(mount, mount.source or mount.kind, True, target)
    descriptor = os.open(mount.source, os.O_PATH | os.O_CLOEXEC)
    if mount.within:
        descriptor = paths_beneath.open_beneath(descriptor, mount.within)
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    return _Planned(mount, f"/proc/self/fd/{descriptor}", is_folder, target)


def _prepare(planned: _Planned, private: set[int], staging: str) -> None:
    """Ensure that a mount point exists; `private` has the device numbers of our tmpfs mounts."""
    if os.path.lexists(planned.target):
        return
    existing = _existing(planned.target)
    if os.stat(existing).st_dev not in private:
        _replace(existing, staging)
        private.add(os.stat(existing).st_dev)
    _make_point(planned)


def _mount(planned: _Planned) -> None:
    mount, target = planned.mount, planned.target
    if not os.path.lexists(target):
        _make_point(planned)
    flags, data = _options(mount.options)
    if mount.kind not in ("", "bind"):
        linux.mount(planned.source, target, mount.kind, flags, data)
        return
    linux.mount(planned.source, target, flags=MS_BIND | MS_REC)
    if not _FROM_HOST.intersection(mount.options):
        linux.mount("none", target, flags=MS_REC | MS_PRIVATE)
    if flags:
        _restrict(target, flags)
    if _READ_ONLY_ALL.intersection(mount.options):
        for point in linux.mount_points():
            if _is_at_or_within(point, (target,)):
                _make_read_only(point)


def _restrict(point: str, flags: int) -> None:
    status = os.statvfs(point)
    kept = sum(ours for theirs, ours in _KEPT.items() if status.f_flag & theirs)
    linux.mount("none", point, flags=MS_BIND | MS_REMOUNT | flags | kept)


def protect_root(own: tuple[MountLaunch, ...]) -> None:
    """Make the machine's file systems read-only, but not the container's own mounts.

    /dev and /proc stay: a read-only root does not include them in other runtimes, either. Mounts
    that the host makes later do not appear, as they could be written to.
    """
    linux.mount("none", "/", flags=MS_REC | MS_PRIVATE)
    targets = {os.path.realpath(each.target) for each in own} - {"/"}
    kept = (*targets, "/dev", "/proc")
    for point in linux.mount_points():
        if not _is_at_or_within(point, kept):
            _make_read_only(point)


def _make_read_only(point: str) -> None:
    """Make one mount read-only, or raise MountError; one that is not reachable stays."""
    try:
        _restrict(point, linux.MS_RDONLY)
    except OSError as error:
        with suppress(OSError):  # nobody can reach it
            if not os.statvfs(point).f_flag & os.ST_RDONLY:
                raise MountError(f"cannot make {point} read-only: {error.strerror}") from None


def _is_at_or_within(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in folders)


def _options(options: tuple[str, ...]) -> tuple[int, str]:
    flags, data = 0, []
    for option in options:
        if option in _FLAGS:
            flags |= _FLAGS[option]
        elif option not in _IGNORED:
            data.append(option)
    return flags, ",".join(data)


def _make_point(planned: _Planned) -> None:
    """Make a mount point; its path is resolved, so a link on it is a container's."""
    flags = os.O_RDONLY | os.O_DIRECTORY if planned.is_folder else os.O_CREAT | os.O_WRONLY
    path = planned.target.lstrip("/")
    os.close(paths_beneath.open_beneath("/", path, flags, mode=0o644, folder_mode=0o755))


def _existing(path: str) -> str:
    while not os.path.isdir(path):
        if os.path.lexists(path):
            raise NotADirectoryError(20, os.strerror(20), path)
        path = os.path.dirname(path)
    return path


def _replace(folder: str, staging: str) -> None:
    status = os.stat(folder)
    names = os.listdir(folder)
    if len(names) > ENTRIES_MAX:
        raise OSError(7, f"{folder} has {len(names)} entries, at most {ENTRIES_MAX} can be kept")
    linux.mount("tmpfs", staging, "tmpfs", data=f"mode={stat.S_IMODE(status.st_mode):o}")
    # The bind mounts below must not include this one: it may be in the folder itself.
    linux.mount("none", staging, flags=MS_UNBINDABLE)
    with suppress(OSError):  # the owner may not exist in this user namespace
        os.chown(staging, status.st_uid, status.st_gid)
    for name in names:
        _repeat(os.path.join(folder, name), os.path.join(staging, name))
    linux.mount("none", staging, flags=MS_PRIVATE)
    if folder == "/":
        _enter_root(staging)
    else:
        linux.mount(staging, folder, flags=MS_MOVE)


def _enter_root(folder: str) -> None:
    try:
        linux.change_root(folder)
    except OSError:  # a root that cannot be pivoted, such as an initial ramdisk
        os.chroot(folder)
        os.chdir("/")


def _leave(root: int) -> None:
    """Detach the old root, from which mounts were made until now."""
    os.chdir(root)
    with suppress(OSError):  # as above
        linux.unmount(".")
    os.chdir("/")


def _repeat(source: str, target: str) -> None:
    """Show an entry of the host in the new folder as well."""
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
        return
    if stat.S_ISDIR(mode):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    linux.mount(source, target, flags=MS_BIND | MS_REC)


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
