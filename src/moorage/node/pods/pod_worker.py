"""Syncs one pod.

    pod changes  ─┐                      ┌─► actions, each a task
    containers   ─┼─► awake ─► plan ─────┤
    actions done ─┘     ▲                └─► status, when no action is in progress (or for too long)
                        └── time ◄──────────

Nothing is polled: a worker sleeps until something happens, or until a time that its plan names.
Changes in quick succession are written to the cluster once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.core.pod import PodStatus
from moorage.api.meta import object_text
from moorage.api.timestamp import Timestamp
from moorage.client.errors import ClientError, ConflictError, NotFoundError
from moorage.client.writes import Patch
from moorage.kit.bulkhead import FAULTS
from moorage.node.pods.pod_actions import (
    CleanUp,
    DeletePod,
    Discard,
    Forget,
    PodAction,
    Requeue,
    Resize,
    SetUp,
    Start,
    Stop,
    key_of,
    plan,
    termination_of,
)
from moorage.node.pods.pod_context import WRITE_BACKOFF, PodContext, reference_of
from moorage.node.pods.pod_record import CRASH_LOOP, PodRecord, container_of, is_running, later
from moorage.node.pods.pod_status import patch_of, status_of
from moorage.node.pods.pod_sync import PodSyncer
from moorage.node.pods.probes import has_probes, probe
from moorage.node.runtime.contract import ContainerId, ContainerState
from moorage.node.runtime.security_context import pod_text

LOG = logging.getLogger(__name__)

QUIET_S = 1.0  # how long actions in progress delay a status
FAULT_S = 30.0  # before a pod is synced again after an internal error
FAILED_SYNC = "error syncing pod: it cannot be processed as its spec and status have it"
WRITE_STATUS, REFRESH, END = "write status", "refresh", "end"


class PodWorker:
    """Looks after one pod until nothing is left of it."""

    def __init__(self, pod: Pod, context: PodContext) -> None:
        self.record = PodRecord(pod, started_at=pod.status.start_time)
        self._context = context
        self._syncer = PodSyncer(self.record, context, self._begin)
        self._awake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes: dict[ContainerId, asyncio.Task[None]] = {}
        self._is_over = False
        self._is_deleted = False
        self._unquiet_since: float | None = None
        self._status_failures = 0
        self._status_after_s = 0.0
        self._loops: set[ContainerId] = set()  # whose crash loop was reported

    # --- events -----------------------------------------------------------------------------------

    def see(self, pod: Pod) -> None:
        """Take in a newer version of the pod."""
        if self.record.see(pod):
            self._awake.set()

    def gone(self) -> None:
        """Note that the API object is deleted."""
        self.record.is_gone = True
        self._awake.set()

    def note(self, state: ContainerState) -> None:
        """Take in the state of a container."""
        if self.record.note(state):
            if not is_running(state):
                self._stop_probe(state.id)
            self._awake.set()

    def look(self) -> None:
        """Sync again: something outside of the pod changed."""
        self._awake.set()

    # --- probe results ----------------------------------------------------------------------------

    def has_started(self, id_: ContainerId) -> None:
        """Note that a container has started: it is past its startup probe."""
        self.record.started.add(id_)
        self._awake.set()

    def is_ready(self, id_: ContainerId, ready: bool) -> None:
        """Note whether a container is ready."""
        (self.record.ready.add if ready else self.record.ready.discard)(id_)
        self._awake.set()

    def is_unhealthy(self, id_: ContainerId, message: str) -> None:
        """Mark a container to be killed."""
        self.record.unhealthy[id_] = message
        self._awake.set()

    # --- the loop ---------------------------------------------------------------------------------

    async def run(self, cleared: Callable[[], None] = lambda: None) -> None:
        """Sync the pod until nothing is left of it; call back when it is cleaned up."""
        try:
            while not self._is_over:
                self._awake.clear()
                wait_s = self._sync_guarded()
                if self.record.is_cleaned_up:
                    cleared()
                await self._sleep(wait_s)
        finally:
            await self._end_tasks()

    def _sync_guarded(self) -> float | None:
        """Sync the pod; an internal error is reported, and the pod synced again later."""
        try:
            return self._sync()
        except Exception as error:
            self._report_fault(error)
            self._end_unplanned()
            return FAULT_S

    def _report_fault(self, error: Exception) -> None:
        pod = self.record.pod
        if FAULTS.note("pods of this node", lambda: object_text(pod), error):
            self._context.warn(pod, "FailedSync", FAILED_SYNC)

    def _end_unplanned(self) -> None:
        """End a pod that no plan can be made for, once it is to be deleted."""
        record = self.record
        is_leaving = record.is_gone or record.pod.metadata.deletion_timestamp is not None
        if is_leaving and END not in record.in_progress:
            self._spawn(END, self._end())

    async def _end(self) -> None:
        """Remove the containers and what they had, then the API object."""
        await self._context.remove_containers(self.record.pod.metadata.uid)
        await self._syncer.clean_up()
        if not self.record.is_cleaned_up:
            return  # it keeps its devices, and is tried again
        if self.record.is_gone:
            await self._discard()
        else:
            await self._syncer.delete()

    async def _sleep(self, wait_s: float | None) -> None:
        if wait_s is None:
            await self._awake.wait()
            return
        timer = self._context.clock.call_later(wait_s, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            timer.cancel()

    def _sync(self) -> float | None:
        """Begin the next actions; return when to sync again."""
        record, now = self.record, self._context.now()
        for state in tuple(record.states.values()):
            self._probe(state)
        record.termination = termination_of(record, now)
        status = self._status(now)
        patch = patch_of(record.pod, status)
        record.is_status_written = (
            record.termination is not None and record.is_cleaned_up and patch is None
        )
        waits = []
        for action in plan(record, now):
            if isinstance(action, Requeue):
                waits.append(action.after_s)
            else:
                self._begin_action(action, now)
        waits += self._refresh_soon(now)
        if patch is not None and not record.is_gone:
            waits += self._write_status_soon()
        return min(waits, default=None)

    def _refresh_soon(self, now: Timestamp) -> list[float]:
        """Write volumes again if it is time, or return when it is."""
        record = self.record
        if (
            record.refresh_at is None
            or record.termination is not None
            or REFRESH in record.in_progress
        ):
            return []
        if now < record.refresh_at:
            return [(record.refresh_at.instant - now.instant).total_seconds()]
        self._spawn(REFRESH, self._syncer.refresh())
        return []

    def current(self) -> Pod:
        """Return the pod with its current status, written or not."""
        pod = self.record.pod
        try:
            return replace(pod, status=self._status(self._context.now()))
        except Exception as error:
            FAULTS.note("status of pods", lambda: object_text(pod), error)
            return pod

    def _status(self, now: Timestamp) -> PodStatus:
        record, context = self.record, self._context
        status = status_of(record, now, context.addresses(), context.health_of)
        for each in (*status.init_container_statuses, *status.container_statuses):
            if (each.state.waiting or {}).get("reason") == CRASH_LOOP:
                self._report_crash_loop(each.name)
        return status

    def _report_crash_loop(self, name: str) -> None:
        last = self.record.latest.get(name)
        if last is None or last.id in self._loops:
            return
        self._loops = {id_ for id_ in self._loops if id_.name != name} | {last.id}
        pod = self.record.pod
        about = reference_of(pod, container_of(pod, name))
        text = f"Back-off restarting failed container {name} in pod {pod_text(pod)}"
        self._context.warn(about, "BackOff", text)

    def _begin_action(self, action: PodAction, now: Timestamp) -> None:
        syncer, record = self._syncer, self.record
        match action:
            case SetUp():
                record.started_at = record.started_at or now
                self._spawn(action, syncer.set_up())
            case Start():
                self._spawn(action, syncer.start(action))
            case Stop(id=id_, grace_s=grace_s):
                record.stop_deadlines[id_] = later(now, grace_s)
                if action.is_resize:
                    record.resize_restarts.add(id_)
                self._spawn((action, now), syncer.stop(action))
            case Resize(id=id_):
                self._spawn(action, syncer.resize(id_))
            case Forget(id=id_):
                self._spawn(action, syncer.forget(id_))
            case CleanUp():
                self._spawn(action, syncer.clean_up())
            case DeletePod():
                self._spawn(action, self._delete())
            case Discard():
                self._spawn(action, self._discard())

    def _spawn(self, what: Any, work: Coroutine[Any, Any, None]) -> None:
        """Carry out an action in a task; it is in progress until then."""
        key = what if isinstance(what, tuple | str) else key_of(what)
        self.record.in_progress.add(key)

        async def do() -> None:
            try:
                await work
            except Exception as error:
                self._report_fault(error)
            finally:
                if not (isinstance(what, DeletePod) and self._is_deleted):
                    self.record.in_progress.discard(key)
                self._awake.set()

        task = asyncio.create_task(do())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete(self) -> None:
        # A pod with finalizers stays; one request is enough.
        self._is_deleted = await self._syncer.delete()

    async def _discard(self) -> None:
        await self._syncer.discard()
        self._is_over = True

    async def _end_tasks(self) -> None:
        tasks = (*self._tasks, *self._probes.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- status -----------------------------------------------------------------------------------

    def _write_status_soon(self) -> list[float]:
        """Write the status now, or return when: actions in progress may change it at once."""
        record, now_s = self.record, self._context.clock.monotonic()
        if WRITE_STATUS in record.in_progress:
            return []
        after_s = self._status_after_s - now_s
        if record.in_progress - {DeletePod()}:
            if self._unquiet_since is None:
                self._unquiet_since = now_s
            after_s = max(after_s, self._unquiet_since + QUIET_S - now_s)
        if after_s > 0:
            return [after_s]
        self._unquiet_since = None
        self._spawn(WRITE_STATUS, self._write_status())
        return []

    async def _write_status(self) -> None:
        record = self.record
        patch = patch_of(record.pod, self._status(self._context.now()))
        if patch is None:
            return
        try:
            await self._write(patch)
            self._status_failures = 0
        except NotFoundError:
            # The watch will report the deletion.
            self._status_after_s = self._context.clock.monotonic() + QUIET_S
        except ClientError as error:
            self._status_failures += 1
            delay_s = WRITE_BACKOFF.delay_s(self._status_failures)
            self._status_after_s = self._context.clock.monotonic() + delay_s
            LOG.warning("the status of pod %s: %s", record.pod.metadata.name, error)

    async def _write(self, patch: Patch) -> None:
        """Patch the status; on a conflict, take in the newer pod."""
        record = self.record
        try:
            record.see(await self._context.client.write(patch))
        except ConflictError:
            metadata = record.pod.metadata
            found = await self._context.client.get(Pod, metadata.namespace, metadata.name)
            if found is None or found.metadata.uid != metadata.uid:
                raise
            record.see(found)

    # --- probes -----------------------------------------------------------------------------------

    def _begin(self, state: ContainerState) -> None:
        self.record.note(state)
        self._probe(state)

    def _probe(self, state: ContainerState) -> None:
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
            listener=self,
            handlers=self._syncer.handlers,
            clock=self._context.clock,
            report=lambda text: self._context.warn(about, "Unhealthy", text),
            was_up=id_ in self.record.started,
        )
        self._probes[id_] = asyncio.create_task(self._probed(work))

    async def _probed(self, work: Coroutine[Any, Any, None]) -> None:
        """Probe a container; where that fails, it counts as not ready."""
        try:
            await work
        except Exception as error:
            self._report_fault(error)

    def _stop_probe(self, id_: ContainerId) -> None:
        task = self._probes.pop(id_, None)
        if task is not None:
            task.cancel()
