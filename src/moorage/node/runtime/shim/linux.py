"""Linux for the shim: an event loop, processes in /proc, and missing system calls.

asyncio would be twice as large as all the rest of the shim. A callback that fails is logged, and
affects nothing else. System calls raise OSError with their subject.
"""

from __future__ import annotations

import ctypes
import heapq
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from moorage.node.runtime.shim.protocol import MARKER

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
WAIT_S_MAX = 3600.0

Callback = Callable[[], object]
_HAS_CHILDREN = os.path.exists(
    "/proc/thread-self/children"
)  # depends on the kernel's configuration
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_NOATIME, MS_NODIRATIME, MS_BIND = 32, 1024, 2048, 4096
MS_MOVE, MS_REC, MS_UNBINDABLE, MS_PRIVATE, MS_SLAVE = 8192, 16384, 1 << 17, 1 << 18, 1 << 19
MS_RELATIME = 1 << 21
MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MPOL_BIND = 2
_CAPABILITY_VERSION_3 = 0x20080522
# Not every C library has pivot_root and set_mempolicy; their numbers depend on the machine.
_NUMBERS = {"x86_64": (155, 238), "aarch64": (41, 237), "riscv64": (41, 237)}


class LoopTimer:
    """A callback that is due later, unless it is cancelled."""

    def __init__(self, call: Callback) -> None:
        self._call: Callback | None = call

    def cancel(self) -> None:
        """Drop the callback."""
        self._call = None

    def fire(self) -> None:
        """Call it now."""
        if self._call is not None:
            _guarded(self._call)


class EventLoop:
    """Waits for descriptors, timers and signals, and calls back."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, LoopTimer]] = []
        self._number = count()
        self._is_running = True
        self._on_signal: dict[int, Callback] = {}
        self._wakeup, self._alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watch(self._wakeup, READ, self._signalled)
        signal.set_wakeup_fd(self._alarm, warn_on_full_buffer=False)

    def on_signal(self, number: int, call: Callback) -> None:
        """Call back soon after a signal."""
        self._on_signal[number] = call
        signal.signal(number, lambda *_: None)

    def watch(self, descriptor: int, events: int, call: Callback) -> None:
        """Call back whenever a descriptor is ready for one of these events."""
        try:
            self._selector.modify(descriptor, events, call)
        except KeyError:
            self._selector.register(descriptor, events, call)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(descriptor)

    def call_later(self, delay_s: float, call: Callback) -> LoopTimer:
        """Call back after a delay."""
        timer = LoopTimer(call)
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._number), timer))
        return timer

    def stop(self) -> None:
        """End `run` after the current callback."""
        self._is_running = False

    def run(self) -> None:
        """Run until stopped."""
        while self._is_running:
            for key, _ in self._selector.select(self._wait_s()):
                # An earlier call of this round may have closed it.
                if self._selector.get_map().get(key.fd) == key:
                    _guarded(key.data)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2].fire()

    def _wait_s(self) -> float:
        if not self._timers:
            return WAIT_S_MAX
        return min(max(self._timers[0][0] - time.monotonic(), 0.0), WAIT_S_MAX)

    def _signalled(self) -> None:
        try:
            numbers = os.read(self._wakeup, 4096)
        except BlockingIOError:
            return
        for number in dict.fromkeys(numbers):
            if number in self._on_signal:
                _guarded(self._on_signal[number])


def _guarded(call: Callback) -> None:
    """Call back; an error is logged, and the shim goes on."""
    try:
        call()
    except Exception as error:
        import traceback  # only now: it is large

        complain(f"{time.time():.3f} fault: {error!r}")
        for line in traceback.format_exc().splitlines():  # an error may quote anything
            complain(f"    | {line if line.isprintable() else ascii(line)}")


def complain(text: str) -> None:
    """Write a line to the log; on a disk that does not take it, it is lost."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


# --- processes ------------------------------------------------------------------------------------


class Process(NamedTuple):
    """One process; its start time distinguishes it from a later one with the same pid."""

    pid: int
    parent: int
    session: int
    started: int  # ticks since the boot
    is_zombie: bool


def boot_id() -> str:
    """Return the id of this boot of the machine, empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def process(pid: int) -> Process | None:
    """Return a process, None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    state, parent, _, session = fields[:4]
    return Process(pid, int(parent), int(session), int(fields[19]), state in (b"Z", b"X"))


def processes() -> Iterator[Process]:
    """Yield all visible processes."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and (found := process(int(name))) is not None:
            yield found


def children(pid: int) -> list[int]:
    """Return the children of a process, of all its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        if not _HAS_CHILDREN:
            return [each.pid for each in processes() if each.parent == pid]
    return found  # none, if it has just ended


def tree(pids: Iterable[int]) -> list[int]:
    """Return processes and all their descendants."""
    found = list(pids)
    for pid in found:  # grows while it is walked
        found += [each for each in children(pid) if each not in found]
    return found


def marker(pid: int) -> str:
    """Return the container that a process belongs to, by its initial environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read(1 << 22)
    except OSError:
        return ""
    start = f"{MARKER}=".encode()
    for variable in content.split(b"\0"):
        if variable.startswith(start):
            return variable[len(start) :].decode(errors="replace")
    return ""


def mount_namespace(pid: int) -> int:
    """Return the inode of a process's mount namespace, 0 if unknown."""
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return 0


def exit_code(status: int) -> tuple[int, int]:
    """Return the exit code that a wait status means, as shells report it, and the signal."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return (128 + number if number else os.WEXITSTATUS(status)), number


def kill(found: Process) -> None:
    """Kill this process, and no later one with its pid."""
    try:
        descriptor = os.pidfd_open(found.pid)
    except OSError:
        return  # gone
    try:
        now = process(found.pid)
        if now is not None and now.started == found.started:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(descriptor)


# --- system calls ---------------------------------------------------------------------------------


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


def prctl(option: int, first: object = 0, second: object = 0, what: str = "prctl") -> None:
    """Change a property of this process; pointers are values of ctypes."""
    words = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in (first, second)]
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(ctypes.c_int(option), *words, zero, zero), what)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (a subreaper)."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    """Receive a signal when the parent ends; Linux drops this when the user changes."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def set_capabilities(kept: Iterable[int]) -> None:
    """Have these capabilities and no others, and pass none on to programs."""
    low, high = 0, 0
    for number in kept:
        low, high = low | (1 << number if number < 32 else 0), high | (1 << number >> 32)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    _checked(_libc.capset(header, sets), "capset")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _checked(_libc.unshare(flags), "unshare")


def enter(descriptor: int, kind: int) -> None:
    """Enter the namespace of a descriptor."""
    _checked(_libc.setns(descriptor, kind), "setns")


def mount_points() -> list[str]:
    """Return where something is mounted in this mount namespace, as this process sees it."""
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().split(b"\n")
    fields = (line.split(b" ") for line in lines if line)
    return [os.fsdecode(_unescaped(each[4])) for each in fields]


def _unescaped(path: bytes) -> bytes:
    """Return a path of mountinfo, in which \\040 is a space."""
    first, *others = path.split(b"\\")
    return first + b"".join(bytes([int(each[:3], 8)]) + each[3:] for each in others)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system, or bind a folder or file."""
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    options = os.fsencode(data) or None
    _checked(_libc.mount(*arguments, ctypes.c_ulong(flags), options), target)


def unmount(target: str) -> None:
    """Detach a mount."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), target)


def change_root(folder: str) -> None:
    """Make a mount the root of this mount namespace; the old root stays below it."""
    os.chdir(folder)
    _checked(_libc.syscall(_number(0), b".", b"."), folder)
    os.chdir("/")


def bind_memory(nodes: Iterable[int]) -> None:
    """Allocate memory from these NUMA nodes only."""
    wanted = tuple(nodes)
    words = (ctypes.c_ulong * (max(wanted) // 64 + 1))()
    for node in wanted:
        words[node // 64] |= 1 << (node % 64)
    bits = ctypes.c_ulong(len(words) * 64 + 1)
    _checked(_libc.syscall(_number(1), _MPOL_BIND, words, bits), "set_mempolicy")
