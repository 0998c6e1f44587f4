"""A worker for each pod of the node, and the resources that the pods use.

After a restart of the agent the workers take over the containers that still exist. Of containers
that are gone, as after a reboot, the pod's status says how they were: one that ran has ended, and
nobody knows how; one that had ended has ended as reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Node, Pod
from moorage.api.core.pod import ContainerStateTerminated, ContainerStatus
from moorage.api.meta import object_text
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.client.writes import RecordEvent
from moorage.kit.bulkhead import FAULTS, keep_running
from moorage.kit.process_memory import release_memory
from moorage.node.pods.admission import UNEXPECTED, AdmissionRejection, check, demand, rejection
from moorage.node.pods.pod_context import PodContext, StartMetrics
from moorage.node.pods.pod_record import KILLED, UNKNOWN_END, is_running
from moorage.node.pods.pod_worker import PodWorker
from moorage.node.pods.resizing import (
    allocated_pod,
    event_text,
    has_other_wish,
    refusal_of,
    wanted_resources,
)
from moorage.node.pods.volumes import remove
from moorage.node.runtime.contract import ContainerId, ContainerState, Phase

LOG = logging.getLogger(__name__)

PLACE = "pods of this node"
STUCK_S = 30.0  # after which a removal that does not end is logged
PODS_BETWEEN = 100  # ended pods between two garbage collections
LOST = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)


class PodWorkers:
    """Has a worker for each pod, from when it is bound until nothing is left of it."""

    def __init__(self, context: PodContext, node: Callable[[], Node | None]) -> None:
        self._context = context
        self._node = node
        self._workers: dict[str, PodWorker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._demands: dict[str, dict[str, int]] = {}  # of admitted pods
        self._used: Counter[str] = Counter()
        self._states: dict[str, list[ContainerState]] = {}  # of pods that are not seen yet
        self._leaving: dict[str, asyncio.Task[None]] = {}  # unknown pods, until they are removed
        self._unreadable: frozenset[str] = frozenset()  # pods when we took over
        self._ended = 0

    @property
    def pods(self) -> list[Pod]:
        """The pods of the node, also deleted ones that still run."""
        return [worker.record.pod for worker in self._workers.values()]

    def current(self) -> list[Pod]:
        """Return the pods with their current status, written or not."""
        return [worker.current() for worker in self._workers.values()]

    def find_named(self, namespace: str, name: str) -> Pod | None:
        """Return a pod with its current status; of several of a name the newest."""
        for worker in reversed(self._workers.values()):
            metadata = worker.record.pod.metadata
            if (metadata.namespace, metadata.name) == (namespace, name):
                return worker.current()
        return None

    @property
    def metrics(self) -> StartMetrics:
        """Metrics of started pods and containers."""
        return self._context.counts

    @property
    def active(self) -> frozenset[str]:
        """The UIDs of pods that may have devices."""
        known = (uid for uid, worker in self._workers.items() if not worker.record.is_cleaned_up)
        return frozenset((*known, *self._leaving, *self._unreadable))

    def find(self, uid: str) -> PodWorker | None:
        """Return the worker of a pod."""
        return self._workers.get(uid)

    # --- take-over --------------------------------------------------------------------------------

    def take_over(
        self, states: Iterable[ContainerState], pods: Iterable[Pod], unreadable: Iterable[str] = ()
    ) -> None:
        """Go on with existing containers; remove what unknown pods left.

        Pods of these UIDs exist and cannot be read: they go on as they are. Nobody waits for the
        removal: a process that cannot be killed holds up no other pod.
        """
        pods = sorted(pods, key=_age)
        self._unreadable = frozenset(unreadable)
        known = {*(pod.metadata.uid for pod in pods), *self._unreadable}
        for state in states:
            self._states.setdefault(state.id.pod_uid, []).append(state)
        kept = {self._context.folder_of(uid).name for uid in (*known, *self._states)}
        folders = {folder.name for folder in _folders(self._context.folder)}
        for uid in sorted(({*self._states} - known) | (folders - kept)):
            self._states.pop(uid, None)
            self._leaving[uid] = self._spawn(self._remove(uid))
        for pod in pods:
            with FAULTS.guard(PLACE, partial(object_text, pod)):
                self.see(pod)

    async def left(self, within_s: float) -> None:
        """Wait a while for the removal of unknown pods."""
        if self._leaving:
            await asyncio.wait(self._leaving.values(), timeout=within_s)

    async def _remove(self, uid: str) -> None:
        """Remove the remains of a pod that the cluster does not know."""
        LOG.info("removing what unknown pod %s left", uid)
        text = "containers of pod %s are still not removed; they keep their devices"
        timer = self._context.clock.call_later(STUCK_S, lambda: LOG.warning(text, uid))
        try:
            await self._context.remove_containers(uid)
        finally:
            timer.cancel()
        await self._context.in_thread(remove, self._context.folder_of(uid))
        del self._leaving[uid]

    # --- events -----------------------------------------------------------------------------------

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take in that a pod was added, updated or deleted."""
        if new is not None:
            self.see(new)
        elif old is not None and (worker := self._workers.get(old.metadata.uid)) is not None:
            worker.gone()

    def see(self, pod: Pod) -> None:
        """Take in a pod, or a newer version of it."""
        worker = self._workers.get(pod.metadata.uid)
        if worker is None:
            self._begin(pod)
        else:
            worker.see(pod)
            with FAULTS.guard(PLACE, partial(object_text, pod)):
                self._resize(worker)

    def note(self, state: ContainerState) -> None:
        """Take in the state of a container."""
        worker = self._workers.get(state.id.pod_uid)
        if worker is None:
            return
        with FAULTS.guard(PLACE, partial(object_text, worker.record.pod)):
            worker.note(state)
        worker.look()

    def compare(self, states: Iterable[ContainerState]) -> None:
        """Take in all existing containers: any other has ended, nobody knows how."""
        there = {state.id: state for state in states}
        for state in there.values():
            self.note(state)
        for worker in self._workers.values():
            with FAULTS.guard(PLACE, partial(object_text, worker.record.pod)):
                for id_, state in tuple(worker.record.states.items()):
                    if id_ not in there and is_running(state):
                        worker.note(lost(state, self._context.now()))

    def look(self) -> None:
        """Sync all pods again."""
        for worker in self._workers.values():
            worker.look()

    def try_again(self) -> None:
        """Set up pods now that wait for it, as when a driver has registered."""
        for worker in self._workers.values():
            failure = worker.record.sync_failure
            if failure is not None:
                worker.record.sync_failure = replace(failure, until=self._context.now())
                worker.look()

    async def close(self) -> None:
        """Stop all workers; containers go on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- within -----------------------------------------------------------------------------------

    def _begin(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        worker = PodWorker(pod, self._context)
        states = self._states.pop(uid, [])
        with FAULTS.guard(PLACE, partial(object_text, pod)):
            names = {state.id.name for state in states}
            states = [*states, *recalled(pod, names, self._context.now())]
        for state in states:
            with FAULTS.guard(PLACE, partial(object_text, pod)):
                worker.record.recall([state])
        record = worker.record
        record.allocated = {**wanted_resources(pod), **record.allocated}
        if _is_new(worker):
            self._admit(worker)
        else:
            with FAULTS.guard(PLACE, partial(object_text, pod)):
                self._count(uid, allocated_pod(record))
                self._resize(worker)
        self._workers[uid] = worker
        self._unreadable -= {uid}
        self._spawn(self._run(uid, worker))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _admit(self, worker: PodWorker) -> None:
        record, context = worker.record, self._context
        refusal: AdmissionRejection | None
        try:
            refusal = check(record.pod, self._node(), self._used)
            if refusal is None:
                self._count(record.pod.metadata.uid, record.pod)
                return
        except Exception as error:
            FAULTS.note("admitting pods", object_text(record.pod), error, "is rejected")
            refusal = UNEXPECTED
        context.warn(record.pod, refusal.reason, refusal.message)
        record.termination = rejection(refusal, context.now())
        record.started_at = context.now()
        record.is_rejected = record.is_cleaned_up = True

    def _count(self, uid: str, pod: Pod) -> None:
        self._demands[uid] = demand(pod, self._node())
        self._used.update(self._demands[uid])

    def _resize(self, worker: PodWorker) -> None:
        """Grant a pod the resources that it wants by now, or say why it must wait."""
        record, context = worker.record, self._context
        pod, uid = record.pod, record.pod.metadata.uid
        if record.termination is not None or not has_other_wish(record):
            record.resize_refusal = None
            return
        others = self._used.copy()
        others.subtract(self._demands.get(uid, {}))
        refusal = refusal_of(pod, self._node(), others)
        if refusal is None:
            record.resize_refusal = None
            record.allocated = wanted_resources(pod)
            self._used.subtract(self._demands.pop(uid, {}))
            self._count(uid, pod)
            text = event_text(pod, "Pod resize started")
            context.record_event(RecordEvent(pod, "ResizeStarted", text))
        elif record.resize_refusal != refusal:
            record.resize_refusal = refusal.reason, refusal.message
            text = event_text(pod, f"Pod resize {refusal.reason}", refusal.message)
            context.warn(pod, f"Resize{refusal.reason}", text)
        worker.look()

    def free(self, uid: str) -> None:
        """Release the resources of a pod; resizes that waited for them go on."""
        freed = self._demands.pop(uid, None)
        if freed is None:
            return
        self._used.subtract(freed)
        for worker in list(self._workers.values()):
            if worker.record.resize_refusal is not None:
                with FAULTS.guard(PLACE, partial(object_text, worker.record.pod)):
                    self._resize(worker)

    async def _run(self, uid: str, worker: PodWorker) -> None:
        if (leaving := self._leaving.get(uid)) is not None:  # it exists after all
            await asyncio.wait([leaving])
        # When cancelled, the pod goes on, and keeps its devices.
        await keep_running(
            PLACE,
            lambda: worker.run(cleared=lambda: self.free(uid)),
            subject=lambda: object_text(worker.record.pod),
            clock=self._context.clock,
        )
        self.free(uid)
        self._workers.pop(uid, None)
        self._clean_up()

    def _clean_up(self) -> None:
        """Collect garbage of ended pods now and then: it is in cycles, and has grown old."""
        self._ended += 1
        if self._ended % PODS_BETWEEN == 0:
            release_memory()


def _folders(folder: Path) -> list[Path]:
    try:
        return [each for each in folder.iterdir() if each.is_dir()]
    except OSError:
        return []


def _is_new(worker: PodWorker) -> bool:
    """Return whether a pod was never admitted before; a restart of the agent rejects none."""
    record = worker.record
    is_known = record.states or record.pod.status.start_time is not None
    return not is_known and record.pod.metadata.deletion_timestamp is None


def _age(pod: Pod) -> tuple[object, str]:
    return pod.metadata.creation_timestamp or NO_TIME, pod.metadata.name


# --- containers that are gone ---------------------------------------------------------------------


def recalled(pod: Pod, names: Iterable[str], now: Timestamp) -> list[ContainerState]:
    """Return the ends of containers by the pod's status, except those of these names."""
    there = frozenset(names)
    status = pod.status
    statuses = (
        *status.init_container_statuses,
        *status.container_statuses,
        *status.ephemeral_container_statuses,
    )
    found = (_recalled(pod, status, now) for status in statuses if status.name not in there)
    return [state for state in found if state is not None]


def lost(state: ContainerState, now: Timestamp) -> ContainerState:
    """Return the end of a container that ran and is gone."""
    return replace(
        state,
        phase=Phase.EXITED,
        finished_at=now,
        exit_code=KILLED,
        reason=UNKNOWN_END,
        message=LOST,
    )


def _recalled(pod: Pod, status: ContainerStatus, now: Timestamp) -> ContainerState | None:
    id_ = ContainerId(pod.metadata.uid, status.name, int(status.restart_count))
    end = status.state.terminated or status.last_state.terminated
    if status.state.running:
        started_at = Timestamp.parse(str(status.state.running.get("startedAt") or now))
        state = ContainerState(id=id_, phase=Phase.RUNNING, started_at=started_at)
        return lost(replace(state, handle=status.container_id, image_id=status.image_id), now)
    return None if end is None else _ended(id_, status, end, now)


def _ended(
    id_: ContainerId, status: ContainerStatus, end: ContainerStateTerminated, now: Timestamp
) -> ContainerState:
    return ContainerState(
        id=id_,
        phase=Phase.EXITED,
        started_at=end.started_at or now,
        finished_at=end.finished_at or now,
        exit_code=int(end.exit_code),
        signal=int(end.signal),
        reason=end.reason,
        message=end.message,
        handle=end.container_id or status.container_id,
        image_id=status.image_id,
    )
