"""Calls of Linux that Python does not have; each raises OSError with what it was about."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_NOATIME, MS_NODIRATIME, MS_BIND = 32, 1024, 2048, 4096
MS_MOVE, MS_REC, MS_UNBINDABLE, MS_PRIVATE, MS_SLAVE = 8192, 16384, 1 << 17, 1 << 18, 1 << 19
MS_RELATIME = 1 << 21
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MPOL_BIND = 2
# (pivot_root, set_mempolicy) are not in every C library; their numbers are by machine.
_NUMBERS = {"x86_64": (155, 238), "aarch64": (41, 237), "riscv64": (41, 237)}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def _number(index: int) -> int:
    numbers = _NUMBERS.get(os.uname().machine)
    if numbers is None:
        raise OSError(38, os.strerror(38))
    return numbers[index]


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def die_with_parent(signal_number: int) -> None:
    """Be sent a signal when the parent ends; forgotten when the user changes."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _checked(_libc.unshare(flags), "unshare")


def enter(descriptor: int, kind: int) -> None:
    """Enter a namespace that a file stands for."""
    _checked(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount something."""
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    options = os.fsencode(data) or None
    _checked(_libc.mount(*arguments, ctypes.c_ulong(flags), options), target)


def unmount(target: str) -> None:
    """Take a mount away, once nobody uses it."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), target)


def change_root(folder: str) -> None:
    """Make a mount the root of this mount namespace; the old root stays below it."""
    os.chdir(folder)
    _checked(_libc.syscall(_number(0), b".", b"."), folder)
    os.chdir("/")


def bind_memory(nodes: Iterable[int]) -> None:
    """Take memory from these nodes only."""
    wanted = tuple(nodes)
    words = (ctypes.c_ulong * (max(wanted) // 64 + 1))()
    for node in wanted:
        words[node // 64] |= 1 << (node % 64)
    bits = ctypes.c_ulong(len(words) * 64 + 1)
    _checked(_libc.syscall(_number(1), _MPOL_BIND, words, bits), "set_mempolicy")
