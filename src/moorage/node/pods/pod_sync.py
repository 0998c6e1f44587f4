"""Carries out the actions of a plan, each by itself, and notes the outcome in the pod's record.

Nothing here raises: a failure becomes a `FailedAttempt` with a backoff, an event, or both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moorage.api.core import Container
from moorage.client.errors import ClientError, NotFoundError
from moorage.client.writes import Delete as DeleteObject
from moorage.client.writes import RecordEvent, Target
from moorage.kit.backoff import Backoff
from moorage.node.contract import (
    FAILED_PREPARE,
    FAILED_SANDBOX,
    DevicesRefusedError,
    PodRefusedError,
    failed_prepare,
    failed_sandbox,
)
from moorage.node.errors import ConfigError, NodeAgentError, SandboxError, SourceError
from moorage.node.pods import volumes
from moorage.node.pods.admission import UNEXPECTED, AdmissionRejection, rejection
from moorage.node.pods.container_environment import (
    CONFIG_ERROR,
    REFRESHED_PART,
    needed_by_container,
    needed_by_volumes,
    token_specs,
)
from moorage.node.pods.container_spec import limits_of, spec_of
from moorage.node.pods.machine_fields import check_sandbox
from moorage.node.pods.pod_actions import Start, Stop
from moorage.node.pods.pod_context import (
    AGAIN_S,
    SET_UP_BACKOFF,
    START_BACKOFF,
    WRITE_BACKOFF,
    PodContext,
    reference_of,
    type_of,
)
from moorage.node.pods.pod_record import FailedAttempt, PodRecord, container_of, later
from moorage.node.pods.probes import HandlerRunner, action_of
from moorage.node.pods.resizing import allocated_pod, event_text, unresized, with_allocated
from moorage.node.pods.volume_claims import claimed_volumes
from moorage.node.runtime.contract import (
    START_ERROR,
    ContainerId,
    ContainerState,
    RuntimeRefusedError,
)

LOG = logging.getLogger(__name__)

HOOK_S = 600.0  # timeout of postStart hooks
LEAST_S = 2.0  # for a container whose preStop hook used up the grace period
REFRESH_AGAIN_S = 60.0  # after volumes could not be written
INTERNAL = "internal error; the log of the node says more"
RESIZE_ERROR = "ResizeError"
RUN_ERROR = "RunContainerError"  # the kubelet's reason for a program that cannot be started


class PodSyncer:
    """Carries out the actions of one pod."""

    def __init__(
        self, record: PodRecord, context: PodContext, started: Callable[[ContainerState], None]
    ):
        self._record = record
        self._context = context
        self._started = started
        self._volumes: dict[str, volumes.Volume] = {}
        self._hooked: set[ContainerId] = set()
        host = context.node_context().pod_ip
        self.handlers = HandlerRunner(context.runtime, context.clock, host)

    # --- setting up -------------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Set up volumes and devices."""
        record, context = self._record, self._context
        try:
            async with context.slots:
                await self._make_volumes_guarded()
            context.counts.pods.inc()
            await context.devices.prepare(record.pod)  # without a slot, as a driver may hang
            await check_sandbox(record.pod, context.client)
        except SandboxError as error:
            context.counts.pod_errors.inc()
            self._note_failure(FAILED_SANDBOX, failed_sandbox(error))
        except (ConfigError, SourceError) as error:
            self._note_failure("FailedMount", str(error))
        except PodRefusedError as error:
            self._refuse(error.reason, str(error))
        except DevicesRefusedError as error:
            self._note_failure(FAILED_PREPARE, failed_prepare(error))
        except Exception as error:
            self._context.note_fault("setting up pods", self._record.pod, error)
            self._note_failure(FAILED_PREPARE, failed_prepare(INTERNAL))
        else:
            record.is_set_up = True
            record.sync_failure = None

    def _refuse(self, reason: str, message: str) -> None:
        """Terminate the pod: it can never have its devices."""
        record, context = self._record, self._context
        context.warn(record.pod, reason, message)
        record.termination = rejection(AdmissionRejection(reason, message), context.now())
        record.is_rejected = True

    async def _make_volumes_guarded(self) -> None:
        """Write the pod's volumes, or raise ConfigError also for what nobody foresaw."""
        try:
            await self._make_volumes()
        except NodeAgentError:
            raise
        except Exception as error:
            self._context.note_fault("volumes of pods", self._record.pod, error)
            raise ConfigError(f"MountVolume.SetUp failed: {UNEXPECTED.message}") from None

    async def _make_volumes(self) -> None:
        """Write the pod's volumes, and schedule the next time if they have tokens."""
        pod, context = self._record.pod, self._context
        if not volumes.has_volumes(pod):
            return
        tokens = tuple(token_specs(pod))
        materials = volumes.Materials(
            context.folder_of(pod.metadata.uid),
            context.node_context(),
            await context.sources.read(pod.metadata.namespace, needed_by_volumes(pod)),
            await context.sources.tokens(pod, tokens),
            await claimed_volumes(context.client, pod),
        )
        self._volumes = volumes.volumes_of(pod, materials)
        await context.in_thread(volumes.make, self._volumes)
        if tokens:
            seconds = REFRESHED_PART * min(each.seconds for each in tokens)
            self._record.refresh_at = later(context.now(), seconds)

    async def refresh(self) -> None:
        """Write volumes again, before tokens expire."""
        record, context = self._record, self._context
        record.refresh_at = later(context.now(), REFRESH_AGAIN_S)
        try:
            await self._make_volumes_guarded()
        except (ConfigError, SourceError) as error:
            LOG.warning("volumes of pod %s stay as they are: %s", record.pod.metadata.name, error)

    async def clean_up(self) -> None:
        """Clean up volumes and devices."""
        record, context = self._record, self._context
        try:
            await context.devices.unprepare(record.pod)
            if volumes.has_volumes(record.pod):
                await context.in_thread(volumes.remove, context.folder_of(record.pod.metadata.uid))
        except DevicesRefusedError as error:
            text = f"Failed to unprepare dynamic resources: {error}"
            self._note_failure("FailedUnprepareDynamicResources", text)
        except Exception as error:
            self._context.note_fault("cleaning up pods", self._record.pod, error)
            text = f"Failed to unprepare dynamic resources: {INTERNAL}"
            self._note_failure("FailedUnprepareDynamicResources", text)
        else:
            record.is_cleaned_up = True
            record.sync_failure = None

    def _note_failure(self, reason: str, message: str) -> None:
        record = self._record
        record.sync_failure = self._wait(record.sync_failure, reason, message, SET_UP_BACKOFF)
        if not record.is_gone:
            self._context.warn(record.pod, reason, message)

    def _wait(
        self, before: FailedAttempt | None, reason: str, message: str, backoff: Backoff
    ) -> FailedAttempt:
        failures = 1 if before is None else before.failures + 1
        until = later(self._context.now(), backoff.delay_s(failures))
        return FailedAttempt(reason, message, until, failures)

    # --- containers -------------------------------------------------------------------------------

    async def start(self, action: Start) -> None:
        """Start a container."""
        record = self._record
        container = with_allocated(record, container_of(record.pod, action.name))
        self._context.counts.containers.inc(type_of(record.pod, action.name))
        try:
            state = await self._start(container, action.attempt)
        except (ConfigError, SourceError) as error:
            self._not_started(container, CONFIG_ERROR, str(error))
        except RuntimeRefusedError as error:
            self._not_started(container, error.reason, str(error))
        except DevicesRefusedError as error:
            self._not_started(container, "PreStartContainerError", str(error))
        except Exception as error:
            self._context.note_fault("starting containers", self._record.pod, error)
            self._not_started(container, CONFIG_ERROR, UNEXPECTED.message)
        else:
            record.start_failures.pop(action.name, None)
            if action.crash is not None:
                record.crash_backoffs[action.name] = action.crash
            record.note_resources(state.id, container.resources)
            self._report_started(container, state)
            self._started(state)
            await self._after_start(container, state.id)

    async def _start(self, container: Container, attempt: int) -> ContainerState:
        record, context = self._record, self._context
        target = getattr(container, "target_container_name", "")
        if target and context.runtime.name.startswith("podman"):
            raise ConfigError(
                f"targetContainerName: no container can join the processes of {target}, which has "
                f"a process namespace of its own in {context.runtime.name}"
            )
        run_options = context.devices.run_options(record.pod, container.name)
        needed = needed_by_container(container)
        contents = await context.sources.read(record.pod.metadata.namespace, needed)
        spec = spec_of(
            record.pod,
            container,
            attempt,
            run_options=run_options,
            volumes=self._volumes,
            node_context=context.node_context(),
            contents=contents,
            services=context.service_variables(record.pod),
        )
        volumes.make_subpaths(spec.edits.mounts)
        await context.devices.before_start(record.pod, container.name)
        async with context.slots:
            return await context.runtime.start(spec)

    async def resize(self, id_: ContainerId) -> None:
        """Give a running container the resources that the node has granted."""
        record = self._record
        container = with_allocated(record, container_of(record.pod, id_.name))
        try:
            await self._context.runtime.update(id_, limits_of(record.pod, container))
        except (RuntimeRefusedError, OSError) as error:
            before = record.resize_failures.get(id_)
            failure = self._wait(before, RESIZE_ERROR, str(error), START_BACKOFF)
            record.resize_failures[id_] = failure
            text = event_text(allocated_pod(record), "Pod resize error", str(error))
            self._context.warn(record.pod, RESIZE_ERROR, text)
        else:
            record.note_resources(id_, container.resources)
            if not any(unresized(record)):
                text = event_text(allocated_pod(record), "Pod resize completed")
                self._context.record_event(RecordEvent(record.pod, "ResizeCompleted", text))

    def _not_started(self, container: Container, reason: str, message: str) -> None:
        record = self._record
        self._context.counts.container_errors.inc(type_of(record.pod, container.name), reason)
        before = record.start_failures.get(container.name)
        record.start_failures[container.name] = self._wait(before, reason, message, START_BACKOFF)
        about = reference_of(record.pod, container)
        self._context.warn(about, "Failed", f"Error: {message}")

    def _report_started(self, container: Container, state: ContainerState) -> None:
        """Record events of a start; image events only for a runtime with images."""
        about = reference_of(self._record.pod, container)
        if state.reason == START_ERROR:
            type_ = type_of(self._record.pod, container.name)
            self._context.counts.container_errors.inc(type_, RUN_ERROR)
            self._context.warn(about, "Failed", f"Error: {state.message}")
            return
        if state.image_id:
            text = f'Container image "{container.image}" already present on machine'
            self._context.record_event(RecordEvent(about, "Pulled", text))
            self._context.record_event(RecordEvent(about, "Created", "Container created"))
        self._context.record_event(RecordEvent(about, "Started", "Container started"))

    async def _after_start(self, container: Container, id_: ContainerId) -> None:
        written = (container.lifecycle or {}).get("postStart")
        if not written:
            return
        answer = await self.handlers.run(id_, action_of(container, written), HOOK_S)
        if not answer.succeeded:
            about = reference_of(self._record.pod, container)
            self._context.warn(about, "FailedPostStartHook", "PostStartHook failed")
            self._record.unhealthy[id_] = "FailedPostStartHook"

    async def stop(self, action: Stop) -> None:
        """Stop a container, after its preStop hook."""
        record, context = self._record, self._context
        container = container_of(record.pod, action.id.name)
        by_s = context.clock.monotonic() + action.grace_s
        try:
            if action.id not in self._hooked:
                self._hooked.add(action.id)
                about = reference_of(record.pod, container)
                context.record_event(RecordEvent(about, "Killing", action.message))
                await self._before_stop(container, action)
            least_s = min(LEAST_S, action.grace_s)
            await context.runtime.stop(action.id, max(by_s - context.clock.monotonic(), least_s))
            await self._look(action.id)
        except Exception as error:
            if isinstance(error, NodeAgentError | OSError):
                LOG.warning("container %s cannot be stopped: %s", action.id, error)
            else:
                context.note_fault("stopping containers", record.pod, error)
            await context.clock.sleep(AGAIN_S)
            record.stop_deadlines.pop(action.id, None)

    async def _before_stop(self, container: Container, action: Stop) -> None:
        written = (container.lifecycle or {}).get("preStop")
        if not written or action.grace_s <= 0:
            return
        answer = await self.handlers.run(action.id, action_of(container, written), action.grace_s)
        if not answer.succeeded:
            about = reference_of(self._record.pod, container)
            self._context.warn(about, "FailedPreStopHook", "PreStopHook failed")

    async def _look(self, id_: ContainerId) -> None:
        """Look up how a container ended, if that is not known yet."""
        state = self._record.states.get(id_)
        if state is None or state.finished_at is not None:
            return
        for each in await self._context.runtime.containers(id_.pod_uid):
            self._record.note(each)

    async def forget(self, id_: ContainerId) -> None:
        """Remove an old attempt; if that fails, it stays until the pod is gone."""
        self._record.states.pop(id_, None)
        try:
            await self._context.runtime.forget(id_)
        except Exception as error:
            LOG.warning("container %s cannot be forgotten: %r", id_, error)

    # --- deletion ---------------------------------------------------------------------------------

    async def delete(self) -> bool:
        """Delete the API object; return whether that worked."""
        record = self._record
        try:
            await self._context.client.write(DeleteObject(Target.of(record.pod), grace_s=0))
        except NotFoundError:
            return True
        except ClientError as error:
            LOG.warning("pod %s cannot be deleted: %s", record.pod.metadata.name, error)
            record.sync_failure = self._wait(
                record.sync_failure, "FailedDelete", str(error), WRITE_BACKOFF
            )
            return False
        return True

    async def discard(self) -> None:
        """Remove the containers and the folder of the pod."""
        uid = self._record.pod.metadata.uid
        await self._context.remove_containers(uid)
        await self._context.in_thread(volumes.remove, self._context.folder_of(uid))
