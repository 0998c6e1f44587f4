"""The keeper as a program: `main(options)` returns at once, and a keeper is there.

    0   it is there, and answers on FOLDER/keeper.sock
    3   another one is there

The socket listens before the caller is let go, so nobody needs to ask twice.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import socket
import sys
import zlib
from typing import Any

from mooring.node.runtime.shim import cgroups
from mooring.node.runtime.shim.keeper import Keeper
from mooring.node.runtime.shim.loop import Loop
from mooring.node.runtime.shim.server import IDLE_S, Server

SOCKET, LOCK, PID, LOG = "keeper.sock", "keeper.lock", "keeper.pid", "keeper.log"
LOG_BYTES_MAX = 1024 * 1024
STOP_GRACE_S = 10.0
LISTEN_BACKLOG = 128
ANOTHER_ONE = 3


def main(options: dict[str, Any]) -> int:
    """Have a keeper for a folder; what it is asked by is not this process, which returns."""
    folder = os.path.realpath(str(options["folder"]))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chdir(folder)  # paths of sockets are short
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return ANOTHER_ONE
    listener = _listening()
    if os.fork():
        return 0
    os.setsid()
    _write_pid()
    _redirect()
    os.chdir("/")
    _run(folder, listener, options)
    os.unlink(os.path.join(folder, SOCKET))
    os._exit(0)


def _run(folder: str, listener: socket.socket, options: dict[str, Any]) -> None:
    mark = f"{zlib.crc32(folder.encode()):08x}"
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        mount = str(options.get("cgroup_mount", cgroups.MOUNT))
        found = cgroups.probe(file.read(), f"mooring-{mark}", mount)
    loop = Loop()
    keeper = Keeper(folder, loop, found, mark=mark)
    keeper.recover()
    server = Server(keeper, listener, idle_s=float(options.get("idle_s", IDLE_S)))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whoever started us may have blocked some
    loop.on_signal(signal.SIGCHLD, keeper.reap)
    loop.on_signal(signal.SIGTERM, lambda: keeper.stop_all(STOP_GRACE_S, server.quit))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # so that children share what is there, and do not copy it
    loop.run()
    found.close()


def _listening() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.lexists(SOCKET):
        os.unlink(SOCKET)  # of a keeper that was killed: we hold the lock
    mask = os.umask(0o177)
    listener.bind(SOCKET)
    os.umask(mask)
    listener.listen(LISTEN_BACKLOG)
    return listener


def _write_pid() -> None:
    with open(PID, "w", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")


def _redirect() -> None:
    """Say nothing but faults, into a file."""
    is_long = os.path.exists(LOG) and os.path.getsize(LOG) > LOG_BYTES_MAX
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if is_long else 0)
    nothing, log = os.open(os.devnull, os.O_RDWR), os.open(LOG, flags, 0o600)
    sys.stdout.flush()
    for number, descriptor in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(descriptor, number)
    os.close(nothing)
    os.close(log)
