"""The steps of a plan, carried out: each one by itself, with what it did put on record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from mooring.api.cdi import ContainerEdits
from mooring.api.core import Container, Pod
from mooring.api.core.resources import CPU, MEMORY
from mooring.api.quantity import Quantity
from mooring.api.runtimeclass import RuntimeClass
from mooring.api.timestamp import Timestamp
from mooring.claims.podresources import container_claim_resources
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.writes import Delete as DeleteObject
from mooring.client.writes import Target, Tell
from mooring.kit.backoff import Backoff
from mooring.node.contract import (
    FAILED_PREPARE,
    FAILED_SANDBOX,
    DeviceRunOptions,
    DevicesRefusedError,
    PodRefusedError,
    failed_prepare,
    failed_sandbox,
)
from mooring.node.errors import ConfigError, SandboxError, SourceError
from mooring.node.pods import volumes
from mooring.node.pods.admission import AdmissionRejection, rejection
from mooring.node.pods.container_environment import (
    CONFIG_ERROR,
    NOTHING,
    REFRESHED_PART,
    Contents,
    NodeContext,
    environment,
    expand_all,
    needed_by_container,
    needed_by_volumes,
    token_specs,
)
from mooring.node.pods.pod_actions import Start, Stop
from mooring.node.pods.pod_context import (
    SET_UP_BACKOFF,
    START_BACKOFF,
    WRITE_BACKOFF,
    PodContext,
    reference_of,
    type_of,
)
from mooring.node.pods.pod_record import FailedAttempt, PodRecord
from mooring.node.pods.probes import HandlerRunner, action_of
from mooring.node.pods.volumes import Volume, mounts_of
from mooring.node.runtime.contract import (
    START_ERROR,
    ContainerId,
    ContainerSpec,
    ContainerState,
    ResourceLimits,
    RuntimeRefusedError,
)
from mooring.node.runtime.sim import annotations_for

LOG = logging.getLogger(__name__)

HOOK_S = 600.0  # of hooks after the start
LEAST_S = 2.0  # that a container has after its hook took all the time
REFRESH_AGAIN_S = 60.0  # after volumes could not be written anew
RUN_ERROR = "RunContainerError"  # what a kubelet calls a program that cannot be started
AGAIN_S = 1.0  # after a runtime failed to stop a container


def later(now: Timestamp, seconds: float) -> Timestamp:
    """Return the time after so many seconds."""
    return Timestamp(now.instant + timedelta(seconds=seconds))


class PodSyncer:
    """Does for one pod what its plan says. Whatever fails is put on record, never raised."""

    def __init__(
        self, record: PodRecord, room: PodContext, started: Callable[[ContainerState], None]
    ):
        self._record = record
        self._room = room
        self._started = started
        self._volumes: dict[str, volumes.Volume] = {}
        self._hooked: set[ContainerId] = set()
        host = room.around().pod_ip
        self.asking = HandlerRunner(room.runtime, room.clock, host)

    # --- setting up -----------------------------------------------------------------------------

    async def _check_handler(self) -> None:
        """Raise SandboxError for a runtime class: our runtimes have one way to run containers."""
        name = self._record.pod.spec.runtime_class_name
        if not name:
            return
        found = await self._room.client.get(RuntimeClass, "", name)
        if found is None:
            raise SandboxError(f'runtimeclass.node.k8s.io "{name}" not found')
        raise SandboxError(f'no runtime for "{found.handler}" is configured')

    async def set_up(self) -> None:
        """Have volumes and devices ready."""
        record, room = self._record, self._room
        try:
            async with room.slots:
                await self._make_volumes()
            room.counts.pods.add()
            await room.devices.prepare(record.pod)  # a driver that hangs has no slot
            await self._check_handler()
        except SandboxError as error:
            room.counts.pod_errors.add()
            self._trouble(FAILED_SANDBOX, failed_sandbox(error))
        except (ConfigError, SourceError) as error:
            self._trouble("FailedMount", str(error))
        except PodRefusedError as error:
            self._refuse(error.reason, str(error))
        except DevicesRefusedError as error:
            self._trouble(FAILED_PREPARE, failed_prepare(error))
        except Exception as error:
            LOG.exception("pod %s cannot be set up", record.pod.metadata.name)
            self._trouble(FAILED_PREPARE, f"Failed to prepare: {error!r}")
        else:
            record.is_set_up = True
            record.trouble = None

    def _refuse(self, reason: str, message: str) -> None:
        """End the pod: it will never have what it needs."""
        record, room = self._record, self._room
        room.warn(record.pod, reason, message)
        record.ending = rejection(AdmissionRejection(reason, message), room.now())
        record.is_refused = True

    async def _make_volumes(self) -> None:
        """Make volumes, or write anew what is in them; plan when that is next."""
        pod, room = self._record.pod, self._room
        if not pod.spec.volumes:
            return
        wishes = tuple(token_specs(pod))
        materials = volumes.Materials(
            room.folder_of(pod.metadata.uid),
            room.around(),
            await room.library.read(pod.metadata.namespace, needed_by_volumes(pod)),
            await room.library.tokens(pod, wishes),
        )
        self._volumes = volumes.volumes_of(pod, materials)
        await room.aside(volumes.make, self._volumes)
        if wishes:
            seconds = REFRESHED_PART * min(wish.seconds for wish in wishes)
            self._record.refresh_at = later(room.now(), seconds)

    async def refresh(self) -> None:
        """Write anew what is in volumes, before tokens end."""
        record, room = self._record, self._room
        record.refresh_at = later(room.now(), REFRESH_AGAIN_S)
        try:
            await self._make_volumes()
        except (ConfigError, SourceError) as error:
            LOG.warning("volumes of pod %s stay as they are: %s", record.pod.metadata.name, error)

    async def clear(self) -> None:
        """Take back volumes and devices."""
        record, room = self._record, self._room
        try:
            await room.devices.unprepare(record.pod)
            if record.pod.spec.volumes:
                await room.aside(volumes.remove, room.folder_of(record.pod.metadata.uid))
        except DevicesRefusedError as error:
            text = f"Failed to unprepare dynamic resources: {error}"
            self._trouble("FailedUnprepareDynamicResources", text)
        except Exception as error:
            LOG.exception("pod %s cannot be cleared", record.pod.metadata.name)
            self._trouble("FailedUnprepareDynamicResources", f"Failed to unprepare: {error!r}")
        else:
            record.is_cleared = True
            record.trouble = None

    def _trouble(self, reason: str, message: str) -> None:
        """Put on record what went wrong, and when it is tried again."""
        record = self._record
        record.trouble = self._wait(record.trouble, reason, message, SET_UP_BACKOFF)
        if not record.is_gone:
            self._room.warn(record.pod, reason, message)

    def _wait(
        self, before: FailedAttempt | None, reason: str, message: str, backoff: Backoff
    ) -> FailedAttempt:
        failures = 1 if before is None else before.failures + 1
        until = later(self._room.now(), backoff.delay_s(failures))
        return FailedAttempt(reason, message, until, failures)

    # --- containers -----------------------------------------------------------------------------

    async def start(self, step: Start) -> None:
        """Start a container."""
        record = self._record
        container = container_of(record.pod, step.name)
        self._room.counts.containers.add(type_of(record.pod, step.name))
        try:
            state = await self._start(container, step.attempt)
        except (ConfigError, SourceError) as error:
            self._not_started(container, CONFIG_ERROR, str(error))
        except RuntimeRefusedError as error:
            self._not_started(container, error.reason, str(error))
        except DevicesRefusedError as error:
            self._not_started(container, "PreStartContainerError", str(error))
        except Exception as error:
            LOG.exception("container %s cannot be started", step.name)
            self._not_started(container, "CreateContainerError", repr(error))
        else:
            record.waits.pop(step.name, None)
            if step.crash is not None:
                record.crashes[step.name] = step.crash
            self._tell_started(container, state)
            self._started(state)
            await self._after_start(container, state.id)

    async def _start(self, container: Container, attempt: int) -> ContainerState:
        record, room = self._record, self._room
        given = room.devices.given(record.pod, container.name)
        needed = needed_by_container(container)
        contents = await room.library.read(record.pod.metadata.namespace, needed)
        spec = spec_of(
            record.pod,
            container,
            attempt,
            given=given,
            volumes=self._volumes,
            around=room.around(),
            contents=contents,
        )
        volumes.make_parts(spec.edits.mounts)
        await room.devices.before_start(record.pod, container.name)
        async with room.slots:
            return await room.runtime.start(spec)

    def _not_started(self, container: Container, reason: str, message: str) -> None:
        record = self._record
        self._room.counts.container_errors.add(type_of(record.pod, container.name), reason)
        before = record.waits.get(container.name)
        record.waits[container.name] = self._wait(before, reason, message, START_BACKOFF)
        about = reference_of(record.pod, container)
        self._room.warn(about, "Failed", f"Error: {message}")

    def _tell_started(self, container: Container, state: ContainerState) -> None:
        """Tell of a start; of steps before it only where a runtime has them: with images."""
        about = reference_of(self._record.pod, container)
        if state.reason == START_ERROR:
            type_ = type_of(self._record.pod, container.name)
            self._room.counts.container_errors.add(type_, RUN_ERROR)
            self._room.warn(about, "Failed", f"Error: {state.message}")
            return
        if state.image_id:
            text = f'Container image "{container.image}" already present on machine'
            self._room.tell(Tell(about, "Pulled", text))
            self._room.tell(Tell(about, "Created", "Container created"))
        self._room.tell(Tell(about, "Started", "Container started"))

    async def _after_start(self, container: Container, id_: ContainerId) -> None:
        written = (container.lifecycle or {}).get("postStart")
        if not written:
            return
        answer = await self.asking.ask(id_, action_of(container, written), HOOK_S)
        if not answer.is_well:
            about = reference_of(self._record.pod, container)
            self._room.warn(about, "FailedPostStartHook", "PostStartHook failed")
            self._record.ailing[id_] = "FailedPostStartHook"

    async def stop(self, step: Stop) -> None:
        """Stop a container, after its hook."""
        record, room = self._record, self._room
        container = container_of(record.pod, step.id.name)
        by_s = room.clock.monotonic() + step.grace_s
        try:
            if step.id not in self._hooked:
                self._hooked.add(step.id)
                about = reference_of(record.pod, container)
                room.tell(Tell(about, "Killing", step.message))
                await self._before_stop(container, step)
            least_s = min(LEAST_S, step.grace_s)
            await room.runtime.stop(step.id, max(by_s - room.clock.monotonic(), least_s))
            await self._look(step.id)
        except Exception as error:
            LOG.warning("container %s cannot be stopped: %r", step.id, error)
            await room.clock.sleep(AGAIN_S)
            record.stops.pop(step.id, None)

    async def _before_stop(self, container: Container, step: Stop) -> None:
        written = (container.lifecycle or {}).get("preStop")
        if not written or step.grace_s <= 0:
            return
        answer = await self.asking.ask(step.id, action_of(container, written), step.grace_s)
        if not answer.is_well:
            about = reference_of(self._record.pod, container)
            self._room.warn(about, "FailedPreStopHook", "PreStopHook failed")

    async def _look(self, id_: ContainerId) -> None:
        """See how a container ended, if nobody has told yet."""
        state = self._record.states.get(id_)
        if state is None or state.finished_at is not None:
            return
        for each in await self._room.runtime.containers(id_.pod_uid):
            self._record.note(each)

    async def forget(self, id_: ContainerId) -> None:
        """Forget an old attempt; if that fails, it stays until the pod goes."""
        self._record.states.pop(id_, None)
        try:
            await self._room.runtime.forget(id_)
        except Exception as error:
            LOG.warning("container %s cannot be forgotten: %r", id_, error)

    # --- the last things ------------------------------------------------------------------------

    async def delete(self) -> bool:
        """Take the pod from the cluster; return whether that worked."""
        record = self._record
        try:
            await self._room.client.write(DeleteObject(Target.of(record.pod), grace_s=0))
        except NotFoundError:
            return True
        except ClientError as error:
            LOG.warning("pod %s cannot be deleted: %s", record.pod.metadata.name, error)
            wait = self._wait(record.trouble, "FailedDelete", str(error), WRITE_BACKOFF)
            record.trouble = wait
            return False
        return True

    async def discard(self) -> None:
        """Forget all that is left of the pod."""
        uid = self._record.pod.metadata.uid
        while True:
            try:
                await self._room.runtime.remove(uid)
                break
            except asyncio.CancelledError:
                raise
            except Exception as error:
                LOG.warning("containers of pod %s cannot be removed: %r", uid, error)
                await self._room.clock.sleep(AGAIN_S)
        await self._room.aside(volumes.remove, self._room.folder_of(uid))


# ---- from mooring.node.pods.containerspecs: A container of a pod as it is to be started: everything worked out (pure).


def container_of(pod: Pod, name: str) -> Container:
    """Return a container of a pod by its name; of one that there is not, only that."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if container.name == name:
            return container
    return Container(name=name)


def spec_of(
    pod: Pod,
    container: Container,
    attempt: int,
    *,
    given: DeviceRunOptions,
    volumes: Mapping[str, Volume],
    around: NodeContext,
    contents: Contents = NOTHING,
) -> ContainerSpec:
    """Return how a container is started with its devices and volumes, or raise ConfigError."""
    values = environment(pod, container, around, contents)
    mounts = ContainerEdits(mounts=mounts_of(container, volumes, values))
    return ContainerSpec(
        id=ContainerId(pod.metadata.uid, container.name, attempt),
        namespace=pod.metadata.namespace,
        pod_name=pod.metadata.name,
        image=container.image,
        command=expand_all(container.command, values),
        args=expand_all(container.args, values),
        working_dir=container.working_dir,
        env=values,
        edits=mounts + given.edits,
        cdi_ids=given.cdi_ids,
        annotations={**annotations_for(pod, container.name), **given.annotations},
        pull_policy=container.image_pull_policy,
        limits=limits_of(pod, container),
        tty=container.tty,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
    )


def limits_of(pod: Pod, container: Container) -> ResourceLimits:
    """Return what a container may use: its limits, raised by what comes with its claims."""
    statuses = pod.status.node_allocatable_resource_claim_statuses or ()
    more = container_claim_resources(statuses, container.name)

    def limit(name: str) -> Quantity | None:
        own = container.resources.limits.get(name)
        return None if own is None else own + more.get(name, Quantity.ZERO)

    cpu, memory = limit(CPU), limit(MEMORY)
    return ResourceLimits(
        cpu_millis=None if cpu is None else cpu.milli_value,
        memory_bytes=None if memory is None else memory.value,
    )
