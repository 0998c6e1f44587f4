"""The shim process: its start, its containers, and the recovery of an earlier shim's.

`main(options)` starts a shim for a folder and returns at once:

    0   it runs, and answers on FOLDER/keeper.sock
    3   another one runs

The socket listens before `main` returns, so no client has to retry.
"""

from __future__ import annotations

import fcntl
import gc
import os
import select
import signal
import socket
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

from moorage.node.runtime.shim import cgroup_manager, container_process, linux
from moorage.node.runtime.shim.cgroup_manager import CgroupManager
from moorage.node.runtime.shim.container import (
    Container,
    ContainerStage,
    ShimRefusalError,
    StartCallback,
    cgroup_name,
)
from moorage.node.runtime.shim.linux import Callback, EventLoop, Process
from moorage.node.runtime.shim.protocol import ContainerKey, Launch, Record, Records
from moorage.node.runtime.shim.server import IDLE_S, ShimServer

KILLED_CODE = 137
RECOVERY_S_MAX = 10.0
CONTAINERS_MAX = 16384
# Older agents and shims use these names, so they stay.
SOCKET, LOCK, PID, LOG = "keeper.sock", "keeper.lock", "keeper.pid", "keeper.log"
LOG_BYTES_MAX = 1024 * 1024
STOP_GRACE_S = 10.0
LISTEN_BACKLOG = 128
ANOTHER_ONE = 3


class Shim:
    """Owns the containers of a folder."""

    def __init__(self, folder: str, loop: EventLoop, cgroups: CgroupManager, *, mark: str) -> None:
        self.loop, self.cgroups, self.mark = loop, cgroups, mark
        self.records = Records(os.path.join(folder, "containers"))
        self.staging = os.path.join(folder, "staging")
        self.boot = linux.boot_id()
        self.is_root = os.geteuid() == 0
        self.descriptor_limits = container_process.descriptor_limits()
        self.on_change: Callable[[dict[str, Any]], None] = lambda _: None
        self.containers: dict[ContainerKey, Container] = {}
        self._owners: dict[int, Callable[[int], None]] = {}
        self._self = os.getpid()
        os.makedirs(self.records.folder, exist_ok=True)
        os.makedirs(self.staging, exist_ok=True)
        linux.adopt_orphans()

    @property
    def is_idle(self) -> bool:
        """Whether no container runs."""
        return all(each.stage is ContainerStage.ENDED for each in self.containers.values())

    # --- requests ---------------------------------------------------------------------------------

    def start(self, launch: Launch, answer: StartCallback) -> None:
        """Start a container, or call back with the one that was started before."""
        known = self.containers.get(launch.key)
        if known is not None:
            known.when_started(answer)
            return
        if len(self.containers) >= CONTAINERS_MAX:
            raise ShimRefusalError(
                "CreateContainerError", f"there are {CONTAINERS_MAX} containers already"
            )
        container = Container(self, Record(launch.key))
        self.containers[launch.key] = container
        container.start(launch, answer)

    def stop(self, key: ContainerKey, grace_s: float, done: Callback) -> None:
        """Stop a container; an unknown one has ended."""
        if (container := self.containers.get(key)) is None:
            done()
        else:
            container.stop(grace_s, done)

    def remove(self, pod_uid: str, done: Callback) -> None:
        """Kill and forget all containers of a pod."""
        keys = [key for key in self.containers if key.pod_uid == pod_uid]

        def forget_all() -> None:
            for key in keys:
                if key in self.containers:
                    del self.containers[key]
                    self.records.remove(key)
            done()

        self._stop_all(keys, 0.0, forget_all)

    def forget(self, key: ContainerKey) -> None:
        """Forget a container that has ended, or raise ShimRefusalError."""
        container = self.containers.get(key)
        if container is None:
            return
        if container.stage is not ContainerStage.ENDED:
            raise ShimRefusalError("ContainerRunning", f"container {key} is still running")
        del self.containers[key]
        self.records.remove(key)

    def stop_all(self, grace_s: float, done: Callback) -> None:
        """Stop every container."""
        self._stop_all(list(self.containers), grace_s, done)

    def _stop_all(self, keys: list[ContainerKey], grace_s: float, done: Callback) -> None:
        left = len(keys)
        if not left:
            done()
            return

        def one_less() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done()

        for key in keys:
            self.containers[key].stop(grace_s, one_less)

    # --- services for containers ------------------------------------------------------------------

    def adopt(self, pid: int, ended: Callable[[int], None]) -> None:
        """Call back with the wait status of a child when it has ended."""
        self._owners[pid] = ended

    def changed(self, container: Container) -> None:
        """Notify whoever watches containers."""
        self.on_change(container.state())

    def dropped(self, container: Container) -> None:
        """Forget a container that never started."""
        self.containers.pop(container.record.key, None)

    def reap(self) -> None:
        """Reap all children that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if (ended := self._owners.pop(pid, None)) is not None:
                ended(status)
        for container in list(self.containers.values()):
            container.sweep()

    def members(self, container: Container) -> list[Process]:
        """Return the live processes of a container.

        Processes that lost their parent are children of the shim. Session, mount namespace or
        environment say which container they belong to.
        """
        while True:
            ours = set(linux.children(self._self))
            found = self._found(container, ours)
            # A process that ends meanwhile leaves its children to the shim: look again.
            if found or ours.issuperset(linux.children(self._self)):
                return found

    def _found(self, container: Container, ours: set[int]) -> list[Process]:
        pids = set(container.commands)
        if container.has_first_process:
            pids.add(container.pid)
        pids.update(pid for pid in ours if pid not in self._owners and self._is_of(pid, container))
        pids = {*linux.tree(pids), *container.cgroup.members()}
        found = (linux.process(pid) for pid in pids)
        return [each for each in found if each is not None and not each.is_zombie]

    def _is_of(self, pid: int, container: Container) -> bool:
        found = linux.process(pid)
        if found is None or found.is_zombie:
            return False
        namespace = container.namespace_number
        return (
            (namespace != 0 and linux.mount_namespace(pid) == namespace)
            or found.session == container.pid
            or linux.marker(pid) == container.marker
        )

    # --- recovery ---------------------------------------------------------------------------------

    def recover(self) -> None:
        """Take over the records, and perhaps processes, of an earlier shim."""
        for record in self.records.all():
            self.containers[record.key] = Container(self, record)
        lost = [each for each in self.containers.values() if each.record.is_running]
        if not lost:
            return
        self._kill_left(lost)
        for container in lost:
            self._record_lost(container)

    def _kill_left(self, lost: list[Container]) -> None:
        """Kill members that outlived the shim: the kernel killed only first processes."""
        deadline = time.monotonic() + RECOVERY_S_MAX
        while (left := self._left(lost)) and time.monotonic() < deadline:
            for each in left:
                _kill_and_wait(each, deadline)
        for each in left:
            linux.complain(f"process {each.pid} cannot be killed")

    def _left(self, lost: list[Container]) -> list[Process]:
        same_boot = [each for each in lost if each.record.boot == self.boot]
        first = {(each.pid, each.record.pid_started) for each in same_boot}
        markers = {each.marker for each in lost}
        in_cgroups: set[int] = set()
        for container in lost:
            in_cgroups |= self.cgroups.find(cgroup_name(container.record.key)).members()
        return [
            each
            for each in linux.processes()
            if each.pid != self._self
            and not each.is_zombie
            and (
                (each.pid, each.started) in first
                or each.pid in in_cgroups
                or linux.marker(each.pid) in markers
            )
        ]

    def _record_lost(self, container: Container) -> None:
        record = container.record
        is_same_boot = record.boot == self.boot
        container.record = record._replace(
            started=record.started or time.time(),
            finished=time.time(),
            exit_code=KILLED_CODE,
            reason="ContainerStatusUnknown",
            message=(
                "the shim of its processes was killed, and the container with it"
                if is_same_boot
                else "the machine was restarted while the container ran"
                if record.boot
                else "its record was damaged"
            ),
        )
        self.cgroups.find(cgroup_name(record.key)).remove()
        try:
            self.records.write(container.record)
        except OSError as error:
            linux.complain(f"record of {record.key}: {error}")


def _kill_and_wait(each: Process, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(each.pid)
    except OSError:
        return
    try:
        linux.kill(each)
        waited_ms = max(0.0, deadline - time.monotonic()) * 1000
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(waited_ms)
    finally:
        os.close(descriptor)


# --- start-up -------------------------------------------------------------------------------------


def main(options: dict[str, Any]) -> int:
    """Start a shim for a folder, and return in the parent."""
    folder = os.path.realpath(str(options["folder"]))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chdir(folder)  # the path of a socket must be short
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
    _serve(folder, listener, options)
    os.unlink(os.path.join(folder, SOCKET))
    os._exit(0)


def _serve(folder: str, listener: socket.socket, options: dict[str, Any]) -> None:
    mark = f"{zlib.crc32(folder.encode()):08x}"
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        mount = str(options.get("cgroup_mount", cgroup_manager.MOUNT))
        found = cgroup_manager.probe(file.read(), f"moorage-{mark}", mount)
    loop = EventLoop()
    shim = Shim(folder, loop, found, mark=mark)
    shim.recover()
    server = ShimServer(shim, listener, idle_s=float(options.get("idle_s", IDLE_S)))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the parent may have blocked some
    loop.on_signal(signal.SIGCHLD, shim.reap)
    loop.on_signal(signal.SIGTERM, lambda: shim.stop_all(STOP_GRACE_S, server.quit))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # so that children share these pages instead of copying them
    loop.run()
    found.close()


def _listening() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.lexists(SOCKET):
        os.unlink(SOCKET)  # left by a shim that was killed: the lock is ours
    mask = os.umask(0o177)
    listener.bind(SOCKET)
    os.umask(mask)
    listener.listen(LISTEN_BACKLOG)
    return listener


def _write_pid() -> None:
    try:
        with open(PID, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:  # a full disk; the lock says that the shim runs
        linux.complain(f"{PID}: {error.strerror}")


def _redirect() -> None:
    """Write errors to a file, and everything else nowhere."""
    is_long = os.path.exists(LOG) and os.path.getsize(LOG) > LOG_BYTES_MAX
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if is_long else 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        log = os.open(LOG, flags, 0o600)
    except OSError:  # a full disk
        log = os.dup(nothing)
    sys.stdout.flush()
    for number, descriptor in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(descriptor, number)
    os.close(nothing)
    os.close(log)
