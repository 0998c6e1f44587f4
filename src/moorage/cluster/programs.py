"""The programs of a control plane, which run with a client until cancelled."""

from __future__ import annotations

import asyncio
import random as system_random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec import Struct

from moorage.api.authentication import TokenRequest, TokenRequestSpec
from moorage.api.core import ServiceAccount
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta, without_managed_fields
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduler_config import KubeSchedulerConfiguration
from moorage.claims.leftovers import SCHEDULER_MANAGER
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import Token, Tokens
from moorage.client.contract import Client, Unreadable
from moorage.client.errors import AlreadyExistsError, ClientError, NotFoundError
from moorage.client.event_recorder import EventRecorder, EventStyle
from moorage.client.informer_factory import InformerFactory
from moorage.client.informers import Informer
from moorage.client.writes import Create
from moorage.controllers.controller import Controller
from moorage.controllers.controller_manager import (
    NOT_EVERYWHERE,
    ControllerManager,
    dra_controllers,
    workload_controllers,
)
from moorage.controllers.metrics import DraMetrics, WorkQueuesMetrics
from moorage.controllers.namespaces import NamespaceController
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock
from moorage.kit.generated_names import new_suffix, new_uid
from moorage.kit.metrics import exposition
from moorage.scheduler.live import (
    Explain,
    LiveScheduler,
    SchedulerConfig,
    SchedulerLoop,
    kinds_of,
    read_config,
)
from moorage.scheduler.live.claim_assume_cache import held_claim
from moorage.scheduler.reservation import IdSource

SCHEDULER = "default-scheduler"
SCHEDULER_AGENT = SCHEDULER_MANAGER  # as whom programs write fields, as in Kubernetes
CONTROLLERS_AGENT = "kube-controller-manager"


class ProgramContext(Struct, frozen=True):
    """What every program needs besides its client: gates, clock, randomness, ids."""

    gates: Gates = Gates.parse()
    clock: Clock = REAL
    random: Callable[[], float] = system_random.random
    fresh: IdSource = IdSource(new_uid, lambda prefix: f"{prefix}{new_suffix()}")


class SchedulerProgram:
    """The scheduler.

    Programs in one process can share informers, so that each object is sent and decoded once.
    """

    def __init__(
        self,
        client: Client,
        context: ProgramContext,
        *,
        config: SchedulerConfig | None = None,  # with features of its own; None: those of the gates
        explain: Explain = lambda *_: "",
        informers: InformerFactory | None = None,
    ) -> None:
        clock = context.clock
        self.config = config = config or read_config(KubeSchedulerConfiguration(), context.gates)
        self.informers = informers or shared_informers(client, context)
        self._has_own = informers is None
        self.scheduler = LiveScheduler(
            config, context.fresh, elapsed=clock.monotonic, explain=explain
        )
        self._recorder = EventRecorder(
            client, SCHEDULER, style=EventStyle.SERIES, clock=clock, random=context.random
        )
        self.loop = SchedulerLoop(self.scheduler, client, clock=clock, record=self._recorder.record)
        for kind in kinds_of(config.features):
            is_optional = kind in NOT_EVERYWHERE or kind is PodDisruptionBudget
            informer = self.informers.informer_for(kind, optional=is_optional)
            informer.add_event_handler(partial(self._changed, informer))
            if kind is ResourceClaim:
                informer.add_unreadable_handler(partial(self._hold, informer))

    def _changed(self, informer: Informer, old: Any | None, new: Any | None) -> None:
        self.loop.changed(old, new, is_listed=informer.is_listing)

    def _hold(self, informer: Informer, item: Unreadable) -> None:
        """Keep the devices that an unreadable claim names from being given to another one."""
        metadata = ObjectMeta(
            name=item.name,
            namespace=item.namespace,
            uid=item.uid,
            resource_version=item.revision,
        )
        claim = held_claim(metadata, item.text)
        gone, new = (claim, None) if item.is_gone else (None, claim)
        if claim is not None:
            self.loop.changed(gone, new, is_listed=informer.is_listing)

    async def run(self) -> None:
        """Schedule until cancelled, once all informers have synced."""
        async with self._recorder.running(), _followed(self.informers, self._has_own):
            await self.loop.run()

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """The metrics of the scheduler and of pods' resources, by path."""
        return {
            "/metrics": self.scheduler.metrics_text,
            "/metrics/resources": self.scheduler.resources_text,
        }


class ControllerProgram:
    """All controllers, as kube-controller-manager runs them."""

    def __init__(
        self,
        client: Client,
        context: ProgramContext,
        *,
        authority: str = "",
        more: tuple[Controller, ...] = (),
        informers: InformerFactory | None = None,
        client_of: Callable[[str], Client] | None = None,
        chosen: Callable[[str], bool] = lambda _: True,
        ends_namespaces: bool = False,
    ) -> None:
        """Take a client that reads all kinds; with `client_of`, each controller has its own.

        `ends_namespaces` is for servers that do not empty deleted namespaces themselves.
        """
        self.metrics = DraMetrics()
        self.queues = WorkQueuesMetrics()
        self.informers = informers or shared_informers(client, context)
        self._has_own = informers is None
        controllers = (
            *dra_controllers(context.gates, self.metrics),
            *workload_controllers(authority=authority, gates=context.gates),
            *((NamespaceController(),) if ends_namespaces else ()),
        )
        self.loops = ControllerManager(
            (*(each for each in controllers if chosen(each.name)), *more),
            client=client,
            informers=self.informers,
            random=context.random,
            clock=context.clock,
            metrics=self.queues,
            client_of=client_of,
        )
        self.beside: tuple[Any, ...] = ()  # programs that share the informers

    async def run(self) -> None:
        """Reconcile until cancelled, once all informers have synced."""
        async with _followed(self.informers, self._has_own):
            if self.beside:
                await run_all(self.loops, *self.beside)
            else:
                await self.loops.run()

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """The metrics of the controllers, by path."""
        return {"/metrics": self._metrics_text}

    def _metrics_text(self) -> str:
        objects = self.informers.objects
        return exposition((*self.metrics.families(objects), *self.queues.families(), FAULTS.total))


def shared_informers(client: Client, context: ProgramContext) -> InformerFactory:
    """Return informers for programs to share; the caller runs them.

    As in Kubernetes' programs, they do not keep managedFields.
    """
    return InformerFactory(
        client, random=context.random, clock=context.clock, transform=without_managed_fields
    )


@asynccontextmanager
async def _followed(informers: InformerFactory, is_own: bool) -> AsyncIterator[None]:
    """Run the informers during a block, or wait for shared ones to sync."""
    if not is_own:
        await informers.wait_for_sync()
        yield
        return
    async with informers.running():
        yield


async def run_all(*programs: Any) -> None:
    """Run programs concurrently until cancelled, or until one fails."""
    async with asyncio.TaskGroup() as tasks:
        for program in programs:
            tasks.create_task(program.run())


# --- names of controllers, as users choose them -----------------------------------------------

_LOOPS_OF = {
    "resourceclaim-controller-groups": "resourceclaim-controller",
    "resourceclaim-controller-releases": "resourceclaim-controller",
}

CONTROLLERS: tuple[str, ...] = (
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "disruption-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "ephemeral-volume-controller",
    "explainer-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "podgroup-protection-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourceclaim-controller",
    "resourcepoolstatusrequest-controller",
    "root-ca-certificate-publisher-controller",
    "service-account-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
)


# As in kube-controller-manager, `*` does not include these.
OFF_BY_DEFAULT: frozenset[str] = frozenset({"explainer-controller"})


def controller_name(loop: str) -> str:
    """Return the name of the controller that a control loop belongs to."""
    return _LOOPS_OF.get(loop, loop)


# --- clients of controllers -------------------------------------------------------------------
#
# As in kube-controller-manager, the manager's user reads all kinds and requests tokens for the
# service accounts in kube-system. A controller writes as its account, so it can do no more than
# its role allows. A token is requested when it is first needed, and again when a fifth of its
# lifetime is left or the server rejects it.

NAMESPACE = "kube-system"
TOKEN_S = 3600
USED_SHARE = 0.8  # of a token's time

# Controllers whose account has another name than they themselves, as Kubernetes has them.
_ACCOUNTS = {
    "endpointslice-mirroring-controller": "endpointslicemirroring-controller",
    "daemonset-controller": "daemon-set-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "node-lifecycle-controller": "node-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "resourceclaim-controller": "resource-claim-controller",
    "resourceclaim-controller-groups": "resource-claim-controller",
    "resourceclaim-controller-releases": "resource-claim-controller",
    "replicationcontroller-controller": "replication-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "taint-eviction-controller": "node-controller",
}

Connect = Callable[[Tokens], ApiClient]  # returns a client that shows these tokens


def account_of(controller: str) -> str:
    """Return the name of a controller's service account."""
    return _ACCOUNTS.get(controller, controller)


class ControllerClients:
    """The clients of service accounts; close them after use."""

    def __init__(self, manager: Client, connect: Connect, *, clock: Clock = REAL) -> None:
        self._manager, self._connect, self._clock = manager, connect, clock
        self._clients: dict[str, ApiClient] = {}

    def client_of(self, controller: str) -> ApiClient:
        """Return the client of a controller's account; controllers of one account share it."""
        account = account_of(controller)
        if account not in self._clients:
            self._clients[account] = self._connect(lambda: self._token(account))
        return self._clients[account]

    async def close(self) -> None:
        """Close all clients."""
        for client in self._clients.values():
            await client.close()

    async def check(self) -> None:
        """Raise ClientError if no token can be requested."""
        await self._token(account_of("deployment-controller"))

    async def _token(self, account: str) -> Token:
        try:
            try:
                granted = await self._ask(account)
            except NotFoundError:
                await self._make(account)
                granted = await self._ask(account)
        except ClientError as error:
            message = f"no token for {NAMESPACE}/{account}: {error.message}"
            raise type(error)(message, code=error.code, reason=error.reason) from None
        lasts_s = granted.spec.expiration_seconds or TOKEN_S
        # By our own clock from now on: the server's may show another time.
        until = self._clock.now() + timedelta(seconds=lasts_s * USED_SHARE)
        return Token(granted.status.token, until)

    async def _ask(self, account: str) -> TokenRequest:
        metadata = ObjectMeta(name=account, namespace=NAMESPACE)
        wish = TokenRequest(metadata=metadata, spec=TokenRequestSpec(expiration_seconds=TOKEN_S))
        granted: TokenRequest = await self._manager.write(Create(wish))
        return granted

    async def _make(self, account: str) -> None:
        metadata = ObjectMeta(name=account, namespace=NAMESPACE)
        with suppress(AlreadyExistsError):  # someone else made it just now
            await self._manager.write(Create(ServiceAccount(metadata=metadata)))
