"""Carries out the plan of one pod.

    pod changes ─┐                      ┌─► steps, each a task
    containers  ─┼─► awake ─► plan ─────┤
    steps done  ─┘     ▲                └─► status, when nothing is under way (or for too long)
                       └── time ◄──────────

Nothing is polled: a worker sleeps until something happens or a time that its plan names. What
happens in quick succession is told to the cluster once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.api.core.podstatus import PodStatus
from mooring.api.timestamp import Timestamp
from mooring.client.errors import ClientError, ConflictError, NotFoundError
from mooring.client.writes import Patch
from mooring.node.pods.pod_actions import (
    Clear,
    DeletePod,
    Discard,
    Forget,
    LookAgain,
    PodAction,
    SetUp,
    Start,
    Stop,
    key_of,
    plan,
    termination_of,
)
from mooring.node.pods.pod_context import WRITE_BACKOFF, PodContext, reference_of
from mooring.node.pods.pod_record import CRASH_LOOP, PodRecord, is_running
from mooring.node.pods.pod_status import patch_of, status_of
from mooring.node.pods.pod_sync import PodSyncer, container_of
from mooring.node.pods.probes import has_probes, probe
from mooring.node.runtime.contract import ContainerId, ContainerState

LOG = logging.getLogger(__name__)

QUIET_S = 1.0  # how long what is under way keeps a status from being told
FAULT_S = 30.0  # until a pod is looked at again that could not be made sense of
TELL, REFRESH = "tell", "refresh"


class PodWorker:
    """Looks after one pod until nothing is left of it."""

    def __init__(self, pod: Pod, room: PodContext) -> None:
        self.record = PodRecord(pod)
        self._room = room
        self._acts = PodSyncer(self.record, room, self._begin)
        self._awake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes: dict[ContainerId, asyncio.Task[None]] = {}
        self._is_over = False
        self._fault = ""
        self._is_deleted = False
        self._unquiet_since: float | None = None
        self._tell_failures = 0
        self._tell_after = 0.0
        self._loops: set[ContainerId] = set()  # whose crash loop was told

    # --- what happens ---------------------------------------------------------------------------

    def see(self, pod: Pod) -> None:
        """Take in a newer version of the pod."""
        if self.record.see(pod):
            self._awake.set()

    def gone(self) -> None:
        """Take in that the cluster has the pod no more."""
        self.record.is_gone = True
        self._awake.set()

    def note(self, state: ContainerState) -> None:
        """Take in how a container is."""
        if self.record.note(state):
            if not is_running(state):
                self._stop_probe(state.id)
            self._awake.set()

    def look(self) -> None:
        """Plan again; something that all pods go by is another."""
        self._awake.set()

    # --- probes tell ----------------------------------------------------------------------------

    def is_up(self, id_: ContainerId) -> None:
        """Take that a container is past its start."""
        self.record.up.add(id_)
        self._awake.set()

    def is_ready(self, id_: ContainerId, ready: bool) -> None:
        """Take whether a container can serve."""
        (self.record.ready.add if ready else self.record.ready.discard)(id_)
        self._awake.set()

    def is_ailing(self, id_: ContainerId, message: str) -> None:
        """Take that a container is to be killed."""
        self.record.ailing[id_] = message
        self._awake.set()

    # --- the loop -------------------------------------------------------------------------------

    async def run(self, cleared: Callable[[], None] = lambda: None) -> None:
        """Look after the pod until nothing is left of it; tell when it needs nothing any more."""
        try:
            while not self._is_over:
                self._awake.clear()
                wait_s = self._guarded_turn()
                if self.record.is_cleared:
                    cleared()
                await self._sleep(wait_s)
        finally:
            await self._end_tasks()

    def _guarded_turn(self) -> float | None:
        """Take a turn; a pod that we cannot make sense of is told so, and looked at later."""
        try:
            return self._turn()
        except Exception as error:
            self._note_fault(error)
            return FAULT_S

    def _note_fault(self, error: Exception) -> None:
        if repr(error) != self._fault:
            self._fault = repr(error)
            name = self.record.pod.metadata.name
            LOG.error("pod %s cannot be looked after", name, exc_info=error)
            self._room.warn(self.record.pod, "FailedSync", f"Error syncing pod: {error!r}")

    async def _sleep(self, wait_s: float | None) -> None:
        if wait_s is None:
            await self._awake.wait()
            return
        timer = self._room.clock.call_later(wait_s, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            timer.cancel()

    def _turn(self) -> float | None:
        """Begin what is to be done now; return when to look again."""
        record, now = self.record, self._room.now()
        for state in tuple(record.states.values()):
            self._probe(state)
        record.ending = termination_of(record.pod, record.known(), now)
        status = self._status(now)
        patch = patch_of(record.pod, status)
        record.is_told = record.ending is not None and record.is_cleared and patch is None
        waits = []
        for step in plan(record.pod, record.known(), now):
            if isinstance(step, LookAgain):
                waits.append(step.after_s)
            else:
                self._do(step, now)
        waits += self._refresh_soon(now)
        if patch is not None and not record.is_gone:
            waits += self._tell_soon()
        return min(waits, default=None)

    def _refresh_soon(self, now: Timestamp) -> list[float]:
        """Write anew what is in volumes when it is time, or return when that is."""
        record = self.record
        if record.refresh_at is None or record.ending is not None or REFRESH in record.doing:
            return []
        if now < record.refresh_at:
            return [(record.refresh_at.instant - now.instant).total_seconds()]
        self._spawn(REFRESH, self._acts.refresh())
        return []

    def current(self) -> Pod:
        """Return the pod with its status as it is known here."""
        return replace(self.record.pod, status=self._status(self._room.now()))

    def _status(self, now: Timestamp) -> PodStatus:
        record, room = self.record, self._room
        status = status_of(record.pod, record.known(), now, room.place(), room.health_of)
        for each in (*status.init_container_statuses, *status.container_statuses):
            if (each.state.waiting or {}).get("reason") == CRASH_LOOP:
                self._tell_loop(each.name)
        return status

    def _tell_loop(self, name: str) -> None:
        last = self.record.known().latest(name)
        if last is None or last.id in self._loops:
            return
        self._loops = {id_ for id_ in self._loops if id_.name != name} | {last.id}
        pod = self.record.pod
        about = reference_of(pod, container_of(pod, name))
        text = (
            f"Back-off restarting failed container {name} in pod {pod.metadata.name}_"
            f"{pod.metadata.namespace}({pod.metadata.uid})"
        )
        self._room.warn(about, "BackOff", text)

    def _do(self, step: PodAction, now: Timestamp) -> None:
        acts, record = self._acts, self.record
        match step:
            case SetUp():
                record.started_at = record.started_at or now
                self._spawn(step, acts.set_up())
            case Start():
                self._spawn(step, acts.start(step))
            case Stop(id=id_, grace_s=grace_s):
                record.stops[id_] = Timestamp(now.instant + timedelta(seconds=grace_s))
                self._spawn((step, now), acts.stop(step))
            case Forget(id=id_):
                self._spawn(step, acts.forget(id_))
            case Clear():
                self._spawn(step, acts.clear())
            case DeletePod():
                self._spawn(step, self._delete())
            case Discard():
                self._spawn(step, self._discard())

    def _spawn(self, what: Any, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside; it is under way until it is done."""
        key = what if isinstance(what, tuple | str) else key_of(what)
        self.record.doing.add(key)

        async def do() -> None:
            try:
                await work
            except Exception as error:
                self._note_fault(error)
            finally:
                if not (isinstance(what, DeletePod) and self._is_deleted):
                    self.record.doing.discard(key)
                self._awake.set()

        task = asyncio.create_task(do())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete(self) -> None:
        # A pod with finalizers stays; once asked for is enough.
        self._is_deleted = await self._acts.delete()

    async def _discard(self) -> None:
        await self._acts.discard()
        self._is_over = True

    async def _end_tasks(self) -> None:
        tasks = (*self._tasks, *self._probes.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- telling --------------------------------------------------------------------------------

    def _tell_soon(self) -> list[float]:
        """Tell the status now, or return when: what is under way may change it at once."""
        record, now_s = self.record, self._room.clock.monotonic()
        if TELL in record.doing:
            return []
        after_s = self._tell_after - now_s
        if record.doing - {DeletePod()}:
            if self._unquiet_since is None:
                self._unquiet_since = now_s
            after_s = max(after_s, self._unquiet_since + QUIET_S - now_s)
        if after_s > 0:
            return [after_s]
        self._unquiet_since = None
        self._spawn(TELL, self._tell())
        return []

    async def _tell(self) -> None:
        record = self.record
        patch = patch_of(record.pod, self._status(self._room.now()))
        if patch is None:
            return
        try:
            await self._write(patch)
            self._tell_failures = 0
        except NotFoundError:
            self._tell_after = self._room.clock.monotonic() + QUIET_S  # we shall hear that it went
        except ClientError as error:
            self._tell_failures += 1
            delay_s = WRITE_BACKOFF.delay_s(self._tell_failures)
            self._tell_after = self._room.clock.monotonic() + delay_s
            LOG.warning("the status of pod %s: %s", record.pod.metadata.name, error)

    async def _write(self, patch: Patch) -> None:
        """Write a status; if the pod is another by now, look at it."""
        record = self.record
        try:
            record.see(await self._room.client.write(patch))
        except ConflictError:
            metadata = record.pod.metadata
            found = await self._room.client.get(Pod, metadata.namespace, metadata.name)
            if found is None or found.metadata.uid != metadata.uid:
                raise
            record.see(found)

    # --- probes ---------------------------------------------------------------------------------

    def _begin(self, state: ContainerState) -> None:
        """Take in a container that was started."""
        self.record.note(state)
        self._probe(state)

    def _probe(self, state: ContainerState) -> None:
        """Ask a container how it is as long as it runs."""
        id_, pod = state.id, self.record.pod
        if id_ in self._probes or not is_running(self.record.states.get(id_)):
            return
        container = container_of(pod, id_.name)
        if not has_probes(container):
            return
        about = reference_of(pod, container)
        work = probe(
            container,
            id_,
            patient=self,
            asking=self._acts.asking,
            clock=self._room.clock,
            tell=lambda text: self._room.warn(about, "Unhealthy", text),
            was_up=id_ in self.record.up,
        )
        self._probes[id_] = asyncio.create_task(work)

    def _stop_probe(self, id_: ContainerId) -> None:
        task = self._probes.pop(id_, None)
        if task is not None:
            task.cancel()
