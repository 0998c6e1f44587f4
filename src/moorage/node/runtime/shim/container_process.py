"""The steps of a new process between fork and exec.

    parent                         child
    fork                           wait for the go
    write the record
    send the go ─────────────────► session, streams, cgroup, CPUs, memory, mounts, user
    read the report ◄───────────── its mount namespace; end of report: the program runs.
                                   Otherwise the failure, and the child exits

No program runs without a record, and a child whose parent is gone exits by itself.

`run_foreground` does the same for a command in the user's terminal, without a shim or a log.
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
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, NoReturn

from moorage.node.runtime.shim import confinement, linux, mounts
from moorage.node.runtime.shim.protocol import ERRORS, OUTPUT, Launch

REPORT_BYTES_MAX = 8192
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class StartFailure(NamedTuple):
    """What went wrong before the program ran."""

    is_program: bool  # the program failed; otherwise its mounts, limits or streams
    text: str


class ChildReport(NamedTuple):
    """The report of a child so far."""

    is_over: bool
    namespace: int | None = None  # a descriptor
    failure: StartFailure | None = None


class ForkedChild(NamedTuple):
    """A process that waits for the go."""

    pid: int
    word: int
    report: socket.socket

    def go(self) -> None:
        """Let it run."""
        os.write(self.word, b"!")
        os.close(self.word)

    def receive(self) -> ChildReport:
        """Return the next part of its report."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.report, REPORT_BYTES_MAX, 1)
        except BlockingIOError:
            return ChildReport(is_over=False)
        except OSError:
            return ChildReport(is_over=True)
        if descriptors:
            os.set_inheritable(descriptors[0], False)  # not by later containers
            return ChildReport(is_over=False, namespace=descriptors[0])
        if not data:
            return ChildReport(is_over=True)
        try:
            return ChildReport(is_over=True, failure=StartFailure(*json.loads(data)))
        except (ValueError, TypeError):
            return ChildReport(
                is_over=True,
                failure=StartFailure(False, "the process was killed before its program ran"),
            )


class StandardStreams(NamedTuple):
    """The descriptors that become 0, 1 and 2; all the same for a terminal."""

    input: int
    output: int
    errors: int
    is_terminal: bool = False


class ParentEnds(NamedTuple):
    """The shim's ends of a child's streams."""

    input: int | None
    outputs: dict[int, int]  # descriptor: channel


@contextmanager
def open_streams(*, tty: bool, stdin: bool) -> Iterator[tuple[StandardStreams, ParentEnds]]:
    """Open the streams of a child; its own ends are closed after the block.

    The shim's ends are closed, too, if the block fails.
    """
    theirs: list[int] = []
    ours: list[int] = []

    def opened(pair: tuple[int, int], *, reads: bool) -> tuple[int, int]:
        mine, yours = pair if reads else pair[::-1]
        ours.append(mine)
        theirs.append(yours)
        return mine, yours

    try:
        if tty:
            terminal, child = opened(os.openpty(), reads=True)
            if stdin:
                ours.append(os.dup(terminal))
            streams = StandardStreams(child, child, child, is_terminal=True)
            yield streams, ParentEnds(ours[1] if stdin else None, {terminal: OUTPUT})
            return
        written: int | None = None
        if stdin:
            written, read = opened(os.pipe2(os.O_CLOEXEC), reads=False)
        else:
            read = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            theirs.append(read)
        output, child_output = opened(os.pipe2(os.O_CLOEXEC), reads=True)
        errors, child_errors = opened(os.pipe2(os.O_CLOEXEC), reads=True)
        streams = StandardStreams(read, child_output, child_errors)
        yield streams, ParentEnds(written, {output: OUTPUT, errors: ERRORS})
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)


class _ProgramError(Exception): ...


def fork(become: Callable[[socket.socket], NoReturn]) -> ForkedChild:
    """Return a child that calls `become` once it gets the go."""
    heard, word = os.pipe2(os.O_CLOEXEC)
    report, report_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:  # too many processes
        for descriptor in (heard, word, report.detach(), report_socket.detach()):
            os.close(descriptor)
        raise
    if pid == 0:
        _run_child(become, heard, word, report_socket, parent)
    os.close(heard)
    report_socket.close()
    report.setblocking(False)
    return ForkedChild(pid, word, report)


def _run_child(
    become: Callable[[socket.socket], NoReturn],
    heard: int,
    word: int,
    report_socket: socket.socket,
    parent: int,
) -> NoReturn:
    def on_word(report_socket: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        os.close(word)
        if os.read(heard, 1) == b"!" and os.getppid() == parent:
            become(report_socket)

    _attempt(on_word, report_socket)


def _attempt(become: Callable[[socket.socket], None], report_socket: socket.socket) -> NoReturn:
    """Call `become`; report what goes wrong, and exit."""
    try:
        become(report_socket)
    except _ProgramError as error:
        _send_failure(report_socket, StartFailure(True, str(error)))
    except BaseException as error:
        text = str(error) or repr(error)
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        _send_failure(report_socket, StartFailure(False, text))
    finally:
        os._exit(127)


def _send_failure(report_socket: socket.socket, failure: StartFailure) -> None:
    text = failure.text[: REPORT_BYTES_MAX // 8]
    report_socket.send(json.dumps((failure.is_program, text)).encode())


def take_streams(streams: StandardStreams) -> None:
    """Begin a session with these as standard streams."""
    os.setsid()
    for number, descriptor in enumerate(streams[:3]):
        os.dup2(descriptor, number, inheritable=True)
    if streams.is_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def take_limits(launch: Launch, process_files: tuple[str, ...]) -> None:
    """Enter cgroups by their `cgroup.procs`, and bind to CPUs and memory nodes."""
    cpus, memory_nodes = launch.cpus, launch.memory_nodes
    for path in process_files:
        with suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
        except (OSError, ValueError):
            raise OSError(f"cannot be bound to cpus {_listed(cpus)}: not on this machine") from None
    if memory_nodes:
        try:
            linux.bind_memory(memory_nodes)
        except OSError as error:
            if error.errno != 38 or memory_nodes != (0,):  # a kernel without NUMA
                text = f"cannot take memory of nodes {_listed(memory_nodes)} only: {error.strerror}"
                raise OSError(text) from None


def take_mounts(
    launch: Launch, report_socket: socket.socket, *, staging: str, is_root: bool
) -> None:
    """Make mounts that the host does not see. Root always gets a mount namespace."""
    wanted, is_read_only = launch.mounts, launch.confinement.is_root_read_only
    if not wanted and not is_read_only and not is_root:
        return
    try:
        mounts.separate(is_root=is_root)
    except OSError as error:
        if is_read_only:
            raise mounts.MountError(
                "the root file system cannot be read-only: this machine allows no mount "
                f"namespaces here ({error.strerror}); run as root"
            ) from None
        for first in wanted:
            is_same = os.path.realpath(first.source) == os.path.realpath(first.target)
            if is_same and not first.within:
                continue  # it is there already
            raise mounts.MountError(
                f"cannot mount {first.source} at {first.target}: this machine allows no mount "
                f"namespaces here ({error.strerror}); run as root, or use the same path"
            ) from None
        return
    mounts.make(wanted, staging=staging)
    if is_read_only:
        mounts.protect_root(wanted)
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    socket.send_fds(report_socket, [b"namespace"], [namespace])


def run_program(
    launch: Launch, command: tuple[str, ...], environment: dict[str, str], limits: tuple[int, int]
) -> NoReturn:
    """Execute a program as the launch's user in its folder, with these file limits."""
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    confinement.take(launch.confinement, launch.groups)
    try:
        os.chdir(launch.folder)
    except OSError as error:
        raise OSError(f"working directory {launch.folder}: {error.strerror}") from None
    os.umask(0o022)
    _reset_signals()
    _end_with_parent(os.getppid())
    _execute(command, environment)


def _reset_signals(*, keep: Collection[int] = ()) -> None:
    """Reset every signal to its default and unblock all: a program inherits both.

    Shells ignore SIGINT and SIGQUIT for what they start in the background, nohup ignores SIGHUP,
    and Python SIGPIPE; whoever started us may have ignored or blocked any other.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, *keep}:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _end_with_parent(parent: int) -> None:
    """Be killed when the parent ends, or exit now if it has."""
    linux.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it ended just before the call
        os._exit(127)


def _execute(command: tuple[str, ...], environment: dict[str, str]) -> NoReturn:
    """Execute a program, looked up in PATH as a shell does."""
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
    """Return the limits on open files for programs, and raise the shim's own to the maximum."""
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


# --- in the foreground ----------------------------------------------------------------------------


def run_foreground(launch: int, report: int, parent: int, staging: str) -> None:
    """Become the program of a launch, or report why not.

    `launch` is a descriptor to read the launch from, `report` a socket for failures. Working
    directory, streams and limits stay those that this process was started with.
    """
    # An interrupt ends this process as it would the program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.set_inheritable(report, False)

    def become(report_socket: socket.socket) -> None:
        _end_with_parent(parent)
        with open(launch, encoding="utf-8") as file:
            _become_foreground(Launch.read(json.load(file)), report_socket, staging)

    _attempt(become, socket.socket(fileno=report))


def _become_foreground(launch: Launch, report_socket: socket.socket, staging: str) -> None:
    take_limits(launch, ())
    is_root = os.geteuid() == 0
    if launch.mounts:
        take_mounts(launch, report_socket, staging=staging, is_root=is_root)
        os.chdir(launch.folder)  # the folder as mounts show it
    confinement.take(launch.confinement, launch.groups)
    # With nohup, the command goes on when the terminal is closed.
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    _reset_signals(keep=(signal.SIGHUP,) if is_nohup else ())
    _execute(launch.command, launch.environment)
