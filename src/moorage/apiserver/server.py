"""Assembly of a server: store, handlers, access control, controllers and the network."""

from __future__ import annotations

import asyncio
import platform
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver import server_files
from moorage.apiserver.admission.chain import AdmissionPlugins
from moorage.apiserver.admission.service_allocator import cluster_ip_range
from moorage.apiserver.audit import NO_AUDIT, Audit, AuditLog, Auditor
from moorage.apiserver.auth.authenticator import Authenticator
from moorage.apiserver.auth.authorizer import (
    AccessControl,
    AdminToken,
    AlwaysAllow,
    AuthorizerInformer,
    ClusterAuthorizer,
    RBACAccessControl,
    core_object_reader,
)
from moorage.apiserver.auth.credentials import (
    Credentials,
    admin_token,
)
from moorage.apiserver.auth.role_reconciler import ClusterRoleAggregator, reconcile_bootstrap_policy
from moorage.apiserver.auth.service_account_tokens import Issuer
from moorage.apiserver.auth.token_requests import TokenSigner
from moorage.apiserver.custom_resources.collector import CustomResourceCollector
from moorage.apiserver.custom_resources.manager import CustomResourceManager
from moorage.apiserver.discovery import version_document
from moorage.apiserver.dynamic_admission.plugin import DynamicAdmission
from moorage.apiserver.http.app import Application
from moorage.apiserver.http.flow_control import FlowControl, Seats
from moorage.apiserver.http.non_resource import ServerDocuments
from moorage.apiserver.http.router import Router
from moorage.apiserver.kubernetes_service import publish_kubernetes_service
from moorage.apiserver.namespace_controller import NamespaceController, create_system_namespaces
from moorage.apiserver.node_proxy import resource_metrics
from moorage.apiserver.resources import REVIEWS, Resources, Review
from moorage.apiserver.runtime_config import RuntimeConfig
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.settings import WATCH_S, Limits, Settings
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.storage.store import compact_regularly, open_store
from moorage.apiserver.system_objects import ensure_system_objects
from moorage.kit.atomic_file import PRIVATE_FOLDER
from moorage.kit.bulkhead import keep_running
from moorage.kit.generated_names import new_suffix, new_uid
from moorage.kit.go_platform import go_arch, go_os
from moorage.store.contract import Store
from moorage.validation.pod_security import PodSecurityConfiguration

if TYPE_CHECKING:
    from moorage.apiserver.http.uvicorn_server import NetworkServer

STORE_FOLDER = "store"


def make_server_context(
    store: Store,
    *,
    gates: Gates | None = None,
    now: Callable[[], Timestamp] | None = None,
    extensions: bool = True,
    resources: Resources | None = None,
    watch_s: Callable[[], int] = lambda: WATCH_S,
) -> ServerContext:
    """Return the context of handlers on a store."""
    gates = gates or Gates.parse()
    return ServerContext(
        registry=Registry(store),
        resources=resources or Resources(serves=partial(RuntimeConfig().serves, gates=gates)),
        gates=gates,
        now=now or _now,
        new_uid=new_uid,
        new_suffix=new_suffix,
        extensions=extensions,
        watch_s=watch_s,
    )


def with_admission(
    server: ServerContext,
    pod_security: PodSecurityConfiguration = PodSecurityConfiguration(),  # noqa: B008
) -> ServerContext:
    """Return a context with admission plugins, which must be prepared before use."""
    admission = AdmissionPlugins(
        server.registry,
        server.resources,
        gates=server.gates,
        now=server.now,
        new_uid=server.new_uid,
        new_suffix=server.new_suffix,
        workers=server.workers,
        pod_security=pod_security,
        cluster_ips=cluster_ip_range(server.gates),
    )
    dynamic = DynamicAdmission(server.registry, server.resources)
    return replace(server, admission=admission, dynamic=dynamic)


def make_application(
    server: ServerContext,
    access_control: AccessControl,
    *,
    address: str = "",
    limits: Limits | None = None,
    seats: Seats | None = None,
    audit: Audit = NO_AUDIT,
    reviews: tuple[Review, ...] = REVIEWS,
) -> Application:
    """Return the ASGI application of a server."""
    metrics = () if server.nodes is None else resource_metrics.SERVED
    documents = ServerDocuments(
        server.resources,
        reviews,
        metrics=metrics,
        version=version_document(
            python_version=platform.python_version(),
            platform=f"{go_os(platform.system())}/{go_arch(platform.machine())}",
        ),
        address=address,
    )
    flow_control = FlowControl(seats or Seats())
    router = Router(
        server, access_control, documents, flow_control=flow_control, audit=audit, reviews=reviews
    )
    return Application(router, limits or Limits())


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address."""
    if address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


class Assembled(NamedTuple):
    """A server without a network."""

    application: Application
    context: ServerContext
    credentials: Credentials | None  # None: without RBAC


@asynccontextmanager
async def assembled(
    settings: Settings,
    *,
    now: Callable[[], Timestamp] | None = None,
    store: Store | None = None,
) -> AsyncIterator[Assembled]:
    """Yield a server with all its controllers, without the network.

    Without a store it opens the one of its settings.
    """
    settings.data_dir.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(_store_of(settings))
        server = with_admission(_server_context(settings, store, now), settings.pod_security)
        await create_system_namespaces(server)
        assert server.admission is not None
        await server.admission.prepare()
        _run_task(keep_running("admission", server.admission.run), stack)
        assert server.dynamic is not None
        await server.dynamic.prepare()
        _run_task(keep_running("policies and webhooks", server.dynamic.run), stack)
        customs = CustomResourceManager(server)
        await customs.load()
        _run_task(keep_running("custom resources", customs.run), stack)
        if settings.runs_namespace_controller:
            _run_task(keep_running("emptying namespaces", NamespaceController(server).run), stack)
            collector = CustomResourceCollector(server)
            _run_task(keep_running("collecting custom resources", collector.run), stack)
        if settings.compact_after_s:
            compacting = partial(compact_regularly, store, settings.compact_after_s)
            _run_task(keep_running("compacting the store", compacting), stack)
        credentials: Credentials | None = None
        if settings.has_rbac:
            server, security, credentials = await _with_rbac(settings, server, stack)
        else:
            security = (
                AlwaysAllow() if settings.allows_all else AdminToken(admin_token(settings.data_dir))
            )
        await ensure_system_objects(server, credentials)
        if settings.port:  # else it is published once the port is known
            await _publish(server, settings, settings.port)
        application = _application(settings, server, security, stack)
        yield Assembled(application, server, credentials)


async def serve(settings: Settings, on_start: Callable[[str], None] = lambda _: None) -> None:
    """Run a server until it is stopped; `on_start` gets its URL."""
    from moorage.apiserver.http.uvicorn_server import NetworkServer

    async with assembled(settings) as made, AsyncExitStack() as stack:
        credentials = made.credentials
        server = NetworkServer(
            made.application,
            settings.address,
            settings.port,
            context=None if credentials is None else _tls_context(settings),
            manners=settings.connection_limits,
        )
        _run_task(_announce(server, settings, made, on_start), stack)
        try:
            await server.serve()
        except asyncio.CancelledError:
            if server.started:
                await server.shutdown()
            raise


@asynccontextmanager
async def listening(made: Assembled, settings: Settings) -> AsyncIterator[str]:
    """Listen with an assembled server while a block lasts; yield its URL.

    The kubeconfig is written by then. In a main thread, the server handles signals.
    """
    async with serving(made, settings) as (url, _):
        yield url


@asynccontextmanager
async def serving(
    made: Assembled, settings: Settings
) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """The same; yield also the task, which ends before the block if a signal stops the server."""
    from moorage.apiserver.http.uvicorn_server import NetworkServer

    server = NetworkServer(
        made.application,
        settings.address,
        settings.port,
        context=None if made.credentials is None else _tls_context(settings),
        manners=settings.connection_limits,
    )
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack:
        _run_task(_announce(server, settings, made, url.set_result), stack)
        task = asyncio.create_task(server.serve())
        await asyncio.wait((task, url), return_when=asyncio.FIRST_COMPLETED)
        try:
            if task.done():
                task.result()  # raises OSError: it cannot listen
            yield await url, task
        finally:
            server.should_exit = True
            await asyncio.gather(task, return_exceptions=True)


def _server_context(
    settings: Settings, store: Store, now: Callable[[], Timestamp] | None = None
) -> ServerContext:
    shortest_s = settings.watch_s_min
    return make_server_context(
        store,
        gates=settings.gates,
        now=now,
        resources=Resources(
            serves=partial(settings.runtime.serves, gates=settings.gates),
            event_ttl_s=settings.event_ttl_s,
        ),
        # Watches that began together should not all end together.
        watch_s=lambda: shortest_s + secrets.randbelow(max(shortest_s, 1)),
    )


def _application(
    settings: Settings, server: ServerContext, security: AccessControl, stack: AsyncExitStack
) -> Application:
    audit: Audit = NO_AUDIT
    if settings.auditing is not None:
        path, policy, rotation = settings.auditing
        log = AuditLog(path, rotation)
        stack.callback(log.close)
        audit = Auditor(policy, log, _now_exactly)
    application = make_application(
        server,
        security,
        address=f"{settings.advertised or settings.address}:{settings.port}",
        limits=settings.limits,
        seats=settings.seats,
        audit=audit,
        reviews=settings.runtime.reviews(settings.gates),
    )
    if isinstance(audit, Auditor):
        application.router.metrics.sources.append(audit.families)
    return application


def _run_task(work: Coroutine[Any, Any, None], stack: AsyncExitStack) -> None:
    """Run a task while the stack is open."""
    stack.push_async_callback(_stopped, asyncio.create_task(work))


async def _with_rbac(
    settings: Settings, server: ServerContext, stack: AsyncExitStack
) -> tuple[ServerContext, AccessControl, Credentials]:
    """Return a context with RBAC, its access control, and the credentials of the server."""
    credentials = server_files.ensure_credentials(settings, _now())
    authorizer = ClusterAuthorizer(settings.gates)
    server = replace(server, authorizer=authorizer, nodes=server_files.node_identity(settings))
    await reconcile_bootstrap_policy(server)
    aggregator = ClusterRoleAggregator(server.registry, server.resources)
    await aggregator.prepare()
    _run_task(keep_running("aggregating cluster roles", aggregator.run), stack)
    informer = AuthorizerInformer(server, authorizer)
    await informer.load()
    _run_task(keep_running("authorization", informer.run), stack)
    audiences = settings.audiences or (settings.issuer,)
    issuer = Issuer(settings.issuer, (credentials.signing_key.public,), audiences)
    server = replace(server, signing=TokenSigner(credentials.signing_key, issuer))
    authenticator = Authenticator(issuer, core_object_reader(server), server.now, settings.tokens)
    return server, RBACAccessControl(authorizer, authenticator), credentials


@asynccontextmanager
async def _store_of(settings: Settings) -> AsyncIterator[Store]:
    """Open the store; also with etcd, a folder has one server, whose credentials it holds."""
    folder = settings.data_dir / STORE_FOLDER
    if settings.etcd is None:
        async with open_store(folder, None) as store:
            yield store
        return
    from moorage.store.sqlite.database import Folder as StoreFolder

    with StoreFolder(folder):
        async with open_store(folder, settings.etcd) as store:
            yield store


def _tls_context(settings: Settings) -> ssl.SSLContext:
    from moorage.apiserver.http.uvicorn_server import tls_context

    return tls_context(settings.data_dir / server_files.CREDENTIALS_FOLDER)


async def _announce(
    server: NetworkServer,
    settings: Settings,
    made: Assembled,
    on_start: Callable[[str], None],
) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    credentials = made.credentials
    if not settings.port:
        await _publish(made.context, settings, server.port)
    url = server_files.url_of(settings, server.port, has_tls=credentials is not None)
    text = server_files.kubeconfig_text(settings, url, credentials)
    is_written = server_files.try_write_kubeconfig(settings, text)
    if credentials is not None:
        server_files.write_component_kubeconfigs(settings, url, credentials)
    on_start(url)
    async with asyncio.TaskGroup() as tasks:
        if not is_written:
            tasks.create_task(server_files.write_kubeconfig_later(settings, text))
        if server.context is not None:
            tasks.create_task(server_files.renew_regularly(settings, server.context))


async def _publish(server: ServerContext, settings: Settings, port: int) -> None:
    await publish_kubernetes_service(server, settings.advertised or settings.address, port)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _now() -> Timestamp:
    return _second(int(time.time()))


@lru_cache(maxsize=1)  # A request asks several times.
def _second(seconds: int) -> Timestamp:
    return Timestamp(datetime.fromtimestamp(seconds, UTC))


def _now_exactly() -> Timestamp:
    return Timestamp(datetime.now(UTC))
