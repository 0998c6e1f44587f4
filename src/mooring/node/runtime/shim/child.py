"""From the fork to the program: what a new process does to itself.

    parent                         child
    fork                           wait for the word
    write the record
    give the word  ──────────────► session, streams, cgroup, CPUs, memory, groups, mounts
    read the report ◄───────────── its mount namespace; the end of the report: it runs.
                                   Else what went wrong, and it ends

Nothing runs without a record, and a child whose parent is gone ends by itself.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import stat
import termios
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from mooring.node.runtime.shim import mounts, system
from mooring.node.runtime.shim.launches import MountLaunch

REPORT_BYTES_MAX = 8192
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failure(NamedTuple):
    """What went wrong before the program ran."""

    is_program: bool  # it could not be run; else it could not have what it needs
    text: str


class Heard(NamedTuple):
    """What a report has said by now."""

    is_over: bool
    namespace: int | None = None  # a descriptor
    failure: Failure | None = None


class Forked(NamedTuple):
    """A process that waits for the word."""

    pid: int
    word: int
    report: socket.socket

    def go(self) -> None:
        """Let it run."""
        os.write(self.word, b"!")
        os.close(self.word)

    def heard(self) -> Heard:
        """Return one more thing that was reported."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.report, REPORT_BYTES_MAX, 1)
        except BlockingIOError:
            return Heard(is_over=False)
        except OSError:
            return Heard(is_over=True)
        if descriptors:
            os.set_inheritable(descriptors[0], False)  # by the containers that come after
            return Heard(is_over=False, namespace=descriptors[0])
        if not data:
            return Heard(is_over=True)
        try:
            return Heard(is_over=True, failure=Failure(*json.loads(data)))
        except (ValueError, TypeError):
            return Heard(is_over=True, failure=Failure(False, "it was killed on its way"))


class Streams(NamedTuple):
    """The descriptors that become 0, 1 and 2; for a terminal all are the same."""

    input: int
    output: int
    errors: int
    is_terminal: bool = False


class Theirs:
    """The ends of streams that are the child's: closed here, whatever happens."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> Theirs:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def terminal(self) -> tuple[int, int]:
        """Return both ends of a new terminal: ours, and theirs."""
        ours, theirs = os.openpty()
        self._descriptors.append(theirs)
        return ours, theirs

    def output(self) -> tuple[int, int]:
        """Return both ends of what they say."""
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        self._descriptors.append(theirs)
        return ours, theirs

    def input(self) -> tuple[int, int]:
        """Return both ends of what they are told."""
        theirs, ours = os.pipe2(os.O_CLOEXEC)
        self._descriptors.append(theirs)
        return ours, theirs

    def nothing(self) -> int:
        """Return an input that is over."""
        theirs = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._descriptors.append(theirs)
        return theirs


class _ProgramError(Exception):
    """A program that cannot be run."""


def fork(become: Callable[[socket.socket], NoReturn]) -> Forked:
    """Return a child that will become something once it gets the word."""
    heard, word = os.pipe2(os.O_CLOEXEC)
    report, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:  # too many processes
        for descriptor in (heard, word, report.detach(), told.detach()):
            os.close(descriptor)
        raise
    if pid == 0:
        _run_child(become, heard, word, told, parent)
    os.close(heard)
    told.close()
    report.setblocking(False)
    return Forked(pid, word, report)


def _run_child(
    become: Callable[[socket.socket], NoReturn],
    heard: int,
    word: int,
    told: socket.socket,
    parent: int,
) -> NoReturn:
    def on_word(told: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        os.close(word)
        if os.read(heard, 1) == b"!" and os.getppid() == parent:
            become(told)

    attempt(on_word, told)


def attempt(become: Callable[[socket.socket], None], told: socket.socket) -> NoReturn:
    """Become something; what goes wrong is told, and this process ends."""
    try:
        become(told)
    except _ProgramError as error:
        _tell(told, Failure(True, str(error)))
    except BaseException as error:
        text = str(error) or repr(error)
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        _tell(told, Failure(False, text))
    finally:
        os._exit(127)


def _tell(told: socket.socket, failure: Failure) -> None:
    text = failure.text[: REPORT_BYTES_MAX // 8]
    told.send(json.dumps((failure.is_program, text)).encode())


def take_streams(streams: Streams) -> None:
    """Begin a session, with these as input, output and errors."""
    os.setsid()
    for number, descriptor in enumerate(streams[:3]):
        os.dup2(descriptor, number, inheritable=True)
    if streams.is_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def take_limits(
    *, doors: tuple[str, ...], cpus: tuple[int, ...], memory_nodes: tuple[int, ...]
) -> None:
    """Enter cgroups, and be bound to CPUs and memory nodes."""
    for door in doors:
        with suppress(OSError), open(door, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
        except (OSError, ValueError):
            raise OSError(f"cannot be bound to cpus {_listed(cpus)}: not on this machine") from None
    if memory_nodes:
        try:
            system.bind_memory(memory_nodes)
        except OSError as error:
            if error.errno != 38 or memory_nodes != (0,):  # a kernel that knows only one node
                text = f"cannot take memory of nodes {_listed(memory_nodes)} only: {error.strerror}"
                raise OSError(text) from None


def take_groups(groups: tuple[int, ...]) -> None:
    """Belong to these groups, too."""
    if groups and os.geteuid() == 0:
        os.setgroups(sorted({*os.getgroups(), *groups}))


def take_mounts(
    wanted: tuple[MountLaunch, ...], told: socket.socket, *, staging: str, is_root: bool
) -> None:
    """See mounts that the host does not see. Root has a mount namespace in any case."""
    if not wanted and not is_root:
        return
    try:
        mounts.separate(is_root=is_root)
    except OSError as error:
        for first in wanted:
            is_same = os.path.realpath(first.source) == os.path.realpath(first.target)
            if is_same and not first.within:
                continue  # it is there
            raise mounts.MountError(
                f"cannot mount {first.source} at {first.target}: this machine allows no mount "
                f"namespaces here ({error.strerror}); run as root, or use the same path"
            ) from None
        return
    mounts.make(wanted, staging=staging)
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    socket.send_fds(told, [b"namespace"], [namespace])


def run_program(
    command: tuple[str, ...], environment: dict[str, str], folder: str, limits: tuple[int, int]
) -> NoReturn:
    """Become the program."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise OSError(f"working directory {folder}: {error.strerror}") from None
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    os.umask(0o022)
    reset_signals()
    end_with_parent(os.getppid())
    execute(command, environment)


def reset_signals(*, keep: Collection[int] = ()) -> None:
    """Have every signal do what it does by default, and block none: a program inherits both.

    Shells ignore SIGINT and SIGQUIT for what they start in the background, nohup ignores SIGHUP,
    and Python SIGPIPE; whoever started us may have ignored or blocked any other.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, *keep}:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def end_with_parent(parent: int) -> None:
    """Be killed when our parent ends, or end now if it has."""
    system.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it ended a moment before
        os._exit(127)


def execute(command: tuple[str, ...], environment: dict[str, str]) -> NoReturn:
    """Run a program instead of this one, found as a shell finds it."""
    name = command[0]
    if "/" in name:
        candidates = [name]
    else:
        path = environment.get("PATH", _DEFAULT_PATH)
        candidates = [os.path.join(folder or ".", name) for folder in path.split(":")]
    refusal = "executable file not found in $PATH"
    for candidate in candidates:
        try:
            os.execve(candidate, command, environment)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            if "/" in name:
                refusal = "no such file or directory"
        except OSError as error:
            refusal = _refusal(candidate, error)
        except ValueError as error:
            refusal = str(error)
    raise _ProgramError(f'exec: "{name}": {refusal}')


def _refusal(path: str, error: OSError) -> str:
    with suppress(OSError):
        if stat.S_ISDIR(os.stat(path).st_mode):
            return "is a directory"
    return (error.strerror or str(error)).lower()


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers[:64]))


def descriptor_limits() -> tuple[int, int]:
    """Return how many files programs may open, and let the keeper itself open all it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard


def resize(descriptor: int, message: dict[str, Any]) -> None:
    """Change the size of a terminal."""
    import struct

    rows, columns = (max(0, min(int(message.get(each, 0)), 65535)) for each in ("rows", "columns"))
    with suppress(OSError):
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
