"""Runs `moor` as if Python had been built for another system, and prints what came of it.

    python -m tests.cli.other_system SYSTEM       a JSON list of command lines from standard input
    python -m tests.cli.other_system SYSTEM ARGUMENT…     one command, with its own output

Python's library and the packages of others are imported first, so they work as here. Then the
modules, functions and constants that Python does not have on that system are taken away, and
Moorage is imported. So this shows what Moorage itself needs; it does not show that the packages of
others work there, or what the system does with paths, processes and sockets.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import signal
import socket
import sys
from functools import partial
from typing import Any, NoReturn

from click.testing import CliRunner

# Where Python's documentation says that something is missing: its "Availability".
_NOT_LINUX = {
    os: (
        "O_DIRECT O_NOATIME O_PATH O_TMPFILE P_PIDFD eventfd fdatasync fexecve getrandom "
        "getresgid getresuid memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate "
        "sched_getaffinity sched_setaffinity setns setresgid setresuid splice unshare"
    ),
    socket: "AF_NETLINK AF_PACKET AF_VSOCK SO_PEERCRED SO_PASSCRED TCP_USER_TIMEOUT",
}
_NOT_POSIX = {
    os: (
        "O_ACCMODE O_CLOEXEC O_DIRECTORY O_DSYNC O_EXLOCK O_NDELAY O_NOCTTY O_NOFOLLOW O_NONBLOCK "
        "O_SYNC ST_NOSUID ST_RDONLY WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG WTERMSIG chown "
        "chroot ctermid fchdir fchmod fchown fork forkpty fstatvfs getegid geteuid getgid "
        "getgroups getloadavg getpgid getpgrp getpriority getsid getuid initgroups killpg "
        "lchown lockf major makedev minor mkfifo mknod nice openpty posix_spawn pread preadv "
        "pwrite pwritev readv sched_yield setegid seteuid setgid setgroups setpgid "
        "setpriority setsid setuid statvfs sync sysconf ttyname uname wait wait3 wait4 waitid "
        "writev"
    ),
    socket: "AF_UNIX CMSG_LEN CMSG_SPACE SCM_RIGHTS SO_REUSEPORT sethostname",
    signal: (
        "SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL SIGPIPE SIGPROF SIGPWR SIGQUIT "
        "SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH alarm pthread_kill "
        "pthread_sigmask setitimer sigwait"
    ),
    asyncio: "open_unix_connection start_unix_server",
}
_MODULES_OF_POSIX = "fcntl grp posix pty pwd readline resource syslog termios tty"
_OTHERS = (
    "click click.shell_completion cryptography.x509 ctypes email.utils getpass grpc http.client "
    "httptools importlib.metadata ipaddress logging.handlers msgspec multiprocessing platform "
    "pydoc re2 sqlite3 ssl subprocess tempfile tomllib urllib.request uuid uvicorn "
    "uvicorn.protocols.http.httptools_impl webbrowser yaml zoneinfo"
)


def become(system: str) -> None:
    """Take away what Python has here, but not on that system."""
    for name in _OTHERS.split():
        importlib.import_module(name)
    assert not [name for name in sys.modules if name.startswith("moorage")]
    a_pair = partial(socket.socketpair, socket.AF_UNIX)  # elsewhere it is made of TCP
    _remove(_NOT_LINUX)
    sys.platform = {"macos": "darwin", "windows": "win32"}[system]
    if system == "windows":
        # Python's library looks at some of these only when it is used.
        shutil._use_fd_functions = False  # type: ignore[attr-defined]
        socket.socketpair = a_pair
        _remove(_NOT_POSIX)
        for name in _MODULES_OF_POSIX.split():
            sys.modules[name] = None  # type: ignore[assignment]
        loop: Any = asyncio.SelectorEventLoop
        loop.add_signal_handler = loop.add_reader = loop.add_writer = _missing


def _remove(missing: dict[Any, str]) -> None:
    for module, names in missing.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)


def _missing(*_: Any) -> NoReturn:
    raise NotImplementedError


def results(lines: list[list[str]]) -> list[dict[str, Any]]:
    """Return status and output of each command line."""
    from moorage.cli.main import moor

    found = []
    for arguments in lines:
        result = CliRunner().invoke(moor, arguments)
        error = result.exception
        is_fault = error is not None and not isinstance(error, SystemExit)
        fault = f"{type(error).__name__}: {error}" if is_fault else ""
        found.append({"status": result.exit_code, "output": result.output, "fault": fault})
    return found


if __name__ == "__main__":
    become(sys.argv[1])
    if sys.argv[2:]:
        from moorage.cli.main import moor

        moor(sys.argv[2:], prog_name="moor")
    json.dump(results(json.load(sys.stdin)), sys.stdout)
