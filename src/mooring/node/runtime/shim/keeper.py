"""All containers of a folder: whose a process is, and what is asked for them."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from mooring.node.runtime.shim import child, processes, system
from mooring.node.runtime.shim.cgroups import Cgroups
from mooring.node.runtime.shim.container import Answer, Container, RefusalError, Stage, cgroup_name
from mooring.node.runtime.shim.launches import Key, Launch
from mooring.node.runtime.shim.loop import Call, Loop
from mooring.node.runtime.shim.processes import Process
from mooring.node.runtime.shim.records import Record, Records

KILLED_CODE = 137
RECOVERY_S_MAX = 10.0
CONTAINERS_MAX = 16384


class Keeper:
    """Keeps the containers of a folder."""

    def __init__(self, folder: str, loop: Loop, cgroups: Cgroups, *, mark: str) -> None:
        self.loop, self.cgroups, self.mark = loop, cgroups, mark
        self.records = Records(os.path.join(folder, "containers"))
        self.staging = os.path.join(folder, "staging")
        self.boot = processes.boot_id()
        self.is_root = os.geteuid() == 0
        self.descriptor_limits = child.descriptor_limits()
        self.on_change: Callable[[dict[str, Any]], None] = lambda _: None
        self.containers: dict[Key, Container] = {}
        self._owners: dict[int, Callable[[int], None]] = {}
        self._self = os.getpid()
        os.makedirs(self.records.folder, exist_ok=True)
        os.makedirs(self.staging, exist_ok=True)
        system.adopt_orphans()

    @property
    def is_idle(self) -> bool:
        """Whether no container runs."""
        return all(each.stage is Stage.ENDED for each in self.containers.values())

    # --- what is asked -------------------------------------------------------------------------

    def start(self, launch: Launch, answer: Answer) -> None:
        """Start a container, or find the one that was."""
        known = self.containers.get(launch.key)
        if known is not None:
            known.when_started(answer)
            return
        if len(self.containers) >= CONTAINERS_MAX:
            raise RefusalError(
                "CreateContainerError", f"there are {CONTAINERS_MAX} containers already"
            )
        container = Container(self, Record(launch.key))
        self.containers[launch.key] = container
        container.start(launch, answer)

    def stop(self, key: Key, grace_s: float, done: Call) -> None:
        """Stop a container; one that is not known has ended."""
        if (container := self.containers.get(key)) is None:
            done()
        else:
            container.stop(grace_s, done)

    def remove(self, pod_uid: str, done: Call) -> None:
        """Kill and forget all containers of a pod."""
        keys = [key for key in self.containers if key.pod_uid == pod_uid]

        def forget_all() -> None:
            for key in keys:
                if key in self.containers:
                    del self.containers[key]
                    self.records.remove(key)
            done()

        self._stop_all(keys, 0.0, forget_all)

    def forget(self, key: Key) -> None:
        """Forget a container that has ended, or raise RefusalError."""
        container = self.containers.get(key)
        if container is None:
            return
        if container.stage is not Stage.ENDED:
            raise RefusalError("ContainerRunning", f"container {key} is still running")
        del self.containers[key]
        self.records.remove(key)

    def stop_all(self, grace_s: float, done: Call) -> None:
        """Stop every container."""
        self._stop_all(list(self.containers), grace_s, done)

    def _stop_all(self, keys: list[Key], grace_s: float, done: Call) -> None:
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

    # --- what containers ask -------------------------------------------------------------------

    def adopt(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have something called with the status of a child when it has ended."""
        self._owners[pid] = ended

    def changed(self, container: Container) -> None:
        """Tell whoever wants to know."""
        self.on_change(container.state())

    def dropped(self, container: Container) -> None:
        """Forget a container that never was."""
        self.containers.pop(container.record.key, None)

    def reap(self) -> None:
        """Take the status of all children that have ended."""
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
        """Return the processes of a container that are alive.

        Those that lost their parent are our children. Whose they are is told by their session,
        their mount namespace, or their environment.
        """
        while True:
            ours = set(processes.children(self._self))
            found = self._found(container, ours)
            # One that ends while we look leaves its children to us: then we look again.
            if found or ours.issuperset(processes.children(self._self)):
                return found

    def _found(self, container: Container, ours: set[int]) -> list[Process]:
        pids = set(container.beside)
        if container.has_first_process:
            pids.add(container.pid)
        pids.update(pid for pid in ours if pid not in self._owners and self._is_of(pid, container))
        pids = {*processes.tree(pids), *container.cgroup.members()}
        found = (processes.process(pid) for pid in pids)
        return [each for each in found if each is not None and not each.is_zombie]

    def _is_of(self, pid: int, container: Container) -> bool:
        found = processes.process(pid)
        if found is None or found.is_zombie:
            return False
        namespace = container.namespace_number
        return (
            (namespace != 0 and processes.mount_namespace(pid) == namespace)
            or found.session == container.pid
            or processes.marker(pid) == container.marker
        )

    # --- after another keeper ------------------------------------------------------------------

    def recover(self) -> None:
        """Take over what a keeper before this one left: records, and perhaps processes."""
        for record in self.records.all():
            self.containers[record.key] = Container(self, record)
        lost = [each for each in self.containers.values() if each.record.is_running]
        if not lost:
            return
        self._kill_left(lost)
        for container in lost:
            self._tell_lost(container)

    def _kill_left(self, lost: list[Container]) -> None:
        """Kill members that outlived the keeper: the kernel killed only first processes."""
        deadline = time.monotonic() + RECOVERY_S_MAX
        while (left := self._left(lost)) and time.monotonic() < deadline:
            for each in left:
                _kill_and_wait(each, deadline)
        for each in left:
            print(f"process {each.pid} cannot be killed", file=sys.stderr, flush=True)

    def _left(self, lost: list[Container]) -> list[Process]:
        same_boot = [each for each in lost if each.record.boot == self.boot]
        first = {(each.pid, each.record.pid_started) for each in same_boot}
        markers = {each.marker for each in lost}
        in_cgroups: set[int] = set()
        for container in lost:
            in_cgroups |= self.cgroups.find(cgroup_name(container.record.key)).members()
        return [
            each
            for each in processes.processes()
            if each.pid != self._self
            and not each.is_zombie
            and (
                (each.pid, each.started) in first
                or each.pid in in_cgroups
                or processes.marker(each.pid) in markers
            )
        ]

    def _tell_lost(self, container: Container) -> None:
        record = container.record
        is_same_boot = record.boot == self.boot
        container.record = record._replace(
            started=record.started or time.time(),
            finished=time.time(),
            exit_code=KILLED_CODE,
            reason="ContainerStatusUnknown",
            message=(
                "the keeper of its processes was killed, and the container with it"
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
            print(f"record of {record.key}: {error}", file=sys.stderr, flush=True)


def _kill_and_wait(each: Process, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(each.pid)
    except OSError:
        return
    try:
        processes.kill(each)
        waited_ms = max(0.0, deadline - time.monotonic()) * 1000
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(waited_ms)
    finally:
        os.close(descriptor)
