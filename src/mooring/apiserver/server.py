"""A server that runs: the store, the application, the network, and what goes on beside them."""

from __future__ import annotations

import asyncio
import platform
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from mooring.api.gates import Gates
from mooring.api.timestamp import Timestamp
from mooring.apiserver.admission import Admission
from mooring.apiserver.app import Application
from mooring.apiserver.auditing import NO_AUDIT, Audit, AuditLog, Auditor
from mooring.apiserver.authentication.authenticator import Authenticator
from mooring.apiserver.authentication.serviceaccounts import Issuer
from mooring.apiserver.authentication.tokenrequests import Signing
from mooring.apiserver.credentials import ADMIN, KUBELET_CLIENT, Credentials, Folder
from mooring.apiserver.discovery import Discovery, version_document
from mooring.apiserver.fairness import Seats, Turnstile
from mooring.apiserver.guard import Guard
from mooring.apiserver.guarding import GuardFollower, RoleSecurity, finder, make_roles
from mooring.apiserver.kubeconfig import kubeconfig as secure_kubeconfig
from mooring.apiserver.limits import WATCH_S, Limits
from mooring.apiserver.namespaces import NamespaceEnd, make_namespaces
from mooring.apiserver.openapi import OpenAPI
from mooring.apiserver.plainaccess import admin_token, kubeconfig, write_private
from mooring.apiserver.reaching.contract import CertificateFiles, NodeIdentity
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resources
from mooring.apiserver.rolekeeping import RoleKeeper
from mooring.apiserver.router import Fixed, Router
from mooring.apiserver.runtimeconfig import RuntimeConfig
from mooring.apiserver.security import AdminToken, AllowAll, Security
from mooring.apiserver.served import REVIEWS, Review
from mooring.apiserver.service import Service
from mooring.apiserver.settings import Settings
from mooring.apiserver.stores import open_store
from mooring.apiserver.upkeep import compact_regularly
from mooring.kit.go_platform import go_arch, go_os
from mooring.kit.naming import new_suffix, new_uid
from mooring.store.contract import Store

if TYPE_CHECKING:
    from mooring.apiserver.network import NetworkServer

KUBECONFIG_FILE = "kubeconfig"
CREDENTIALS_FOLDER = "pki"
STORE_FOLDER = "store"
RENEW_EVERY_S = 12 * 3600


def make_service(
    store: Store,
    *,
    gates: Gates | None = None,
    now: Callable[[], Timestamp] | None = None,
    extensions: bool = True,
    resources: Resources | None = None,
    watch_s: Callable[[], int] = lambda: WATCH_S,
) -> Service:
    """Return what the verbs need, on a store."""
    gates = gates or Gates.parse()
    return Service(
        registry=Registry(store),
        resources=resources or Resources(serves=partial(RuntimeConfig().serves, gates=gates)),
        gates=gates,
        now=now or _now,
        new_uid=new_uid,
        new_suffix=new_suffix,
        extensions=extensions,
        watch_s=watch_s,
    )


def with_admission(service: Service) -> Service:
    """Return a service that completes what is new and charges quotas; it must be prepared."""
    admission = Admission(
        service.registry,
        service.resources,
        gates=service.gates,
        now=service.now,
        new_uid=service.new_uid,
        new_suffix=service.new_suffix,
    )
    return replace(service, admission=admission)


def make_application(
    service: Service,
    security: Security,
    *,
    address: str = "",
    limits: Limits | None = None,
    seats: Seats | None = None,
    audit: Audit = NO_AUDIT,
    reviews: tuple[Review, ...] = REVIEWS,
) -> Application:
    """Return the ASGI application of a service."""
    fixed = Fixed(
        discovery=Discovery(service.resources, reviews),
        openapi=OpenAPI(service.resources, reviews),
        version=version_document(
            python_version=platform.python_version(),
            platform=f"{go_os(platform.system())}/{go_arch(platform.machine())}",
        ),
        address=address,
    )
    turnstile = Turnstile(seats or Seats())
    router = Router(service, security, fixed, turnstile=turnstile, audit=audit, reviews=reviews)
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
    service: Service
    credentials: Credentials | None  # None: without roles


@asynccontextmanager
async def assembled(
    settings: Settings,
    *,
    now: Callable[[], Timestamp] | None = None,
    store: Store | None = None,
) -> AsyncIterator[Assembled]:
    """Give a server with all that goes on beside it, but for the network.

    Without a store it opens the one of its settings.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(_store_of(settings))
        service = with_admission(_service(settings, store, now))
        await make_namespaces(service)
        assert service.admission is not None
        await service.admission.prepare()
        _beside(service.admission.run(), stack)
        if settings.ends_namespaces:
            _beside(NamespaceEnd(service).run(), stack)
        if settings.kept_s:
            _beside(compact_regularly(store, settings.kept_s), stack)
        credentials: Credentials | None = None
        if settings.has_roles:
            service, security, credentials = await _guarded(settings, service, stack)
        else:
            security = AllowAll() if settings.allows_all else AdminToken(_token(settings))
        application = _application(settings, service, security, stack)
        yield Assembled(application, service, credentials)


async def serve(settings: Settings, on_start: Callable[[str], None] = lambda _: None) -> None:
    """Run a server until it is told to stop; `on_start` gets its URL."""
    from mooring.apiserver.network import NetworkServer

    async with assembled(settings) as made, AsyncExitStack() as stack:
        credentials = made.credentials
        server = NetworkServer(
            made.application,
            settings.address,
            settings.port,
            context=None if credentials is None else _context(settings),
            manners=settings.manners,
        )
        _beside(_tell(server, settings, credentials, on_start), stack)
        try:
            await server.serve()
        except asyncio.CancelledError:
            if server.started:
                await server.shutdown()
            raise


@asynccontextmanager
async def listening(made: Assembled, settings: Settings) -> AsyncIterator[str]:
    """Have an assembled server listen for as long as a block lasts; give its URL.

    The kubeconfig is written then. In a main thread, signals are the server's.
    """
    from mooring.apiserver.network import NetworkServer

    context = None if made.credentials is None else _context(settings)
    server = NetworkServer(made.application, settings.address, settings.port, context=context)
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack:
        _beside(_tell(server, settings, made.credentials, url.set_result), stack)
        serving = asyncio.create_task(server.serve())
        await asyncio.wait((serving, url), return_when=asyncio.FIRST_COMPLETED)
        try:
            if serving.done():
                serving.result()  # raises OSError: it cannot listen
            yield await url
        finally:
            server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)


def _service(
    settings: Settings, store: Store, now: Callable[[], Timestamp] | None = None
) -> Service:
    shortest_s = settings.watch_s_min
    return make_service(
        store,
        gates=settings.gates,
        now=now,
        resources=Resources(
            serves=partial(settings.runtime.serves, gates=settings.gates),
            event_ttl_s=settings.event_ttl_s,
        ),
        # Not all watches that began together end together.
        watch_s=lambda: shortest_s + secrets.randbelow(max(shortest_s, 1)),
    )


def _application(
    settings: Settings, service: Service, security: Security, stack: AsyncExitStack
) -> Application:
    audit: Audit = NO_AUDIT
    if settings.auditing is not None:
        path, policy, rotation = settings.auditing
        log = AuditLog(path, rotation)
        stack.callback(log.close)
        audit = Auditor(policy, log, _now_exactly)
    application = make_application(
        service,
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


def _beside(work: Coroutine[Any, Any, None], stack: AsyncExitStack) -> None:
    """Have something done as long as the stack is open."""
    stack.push_async_callback(_stopped, asyncio.create_task(work))


async def _guarded(
    settings: Settings, service: Service, stack: AsyncExitStack
) -> tuple[Service, Security, Credentials]:
    """Return a service that asks a guard, the guard's security, and what it is known by."""
    credentials = _credentials(settings)
    guard = Guard(settings.gates)
    service = replace(service, guard=guard, nodes=_node_identity(settings))
    await make_roles(service)
    keeper = RoleKeeper(service.registry, service.resources)
    await keeper.prepare()
    _beside(keeper.run(), stack)
    follower = GuardFollower(service, guard)
    await follower.load()
    _beside(follower.run(), stack)
    audiences = settings.audiences or (settings.issuer,)
    issuer = Issuer(settings.issuer, (credentials.signing_key.public,), audiences)
    service = replace(service, signing=Signing(credentials.signing_key, issuer))
    authenticator = Authenticator(issuer, finder(service), service.now, settings.tokens)
    return service, RoleSecurity(guard, authenticator), credentials


def _credentials(settings: Settings) -> Credentials:
    """Return the credentials; the certificate is for all that the server is called."""
    names, addresses = [], []
    for name in (settings.address, settings.advertised, *settings.names):
        try:
            address = ip_address(name)
        except ValueError:
            names.append(name)
        else:
            addresses += [] if address.is_unspecified else [str(address)]
    folder = Folder(settings.data_dir / CREDENTIALS_FOLDER)
    return folder.ensure(_now(), names=tuple(filter(None, names)), addresses=tuple(addresses))


def _node_identity(settings: Settings) -> NodeIdentity:
    folder = settings.data_dir / CREDENTIALS_FOLDER
    own = [folder / f"{KUBELET_CLIENT}.{ending}" for ending in ("crt", "key")]
    return CertificateFiles(folder / "ca.crt", *own)


async def _renew(settings: Settings, context: ssl.SSLContext) -> None:
    """Renew credentials in time; new connections get the new certificate."""
    folder = settings.data_dir / CREDENTIALS_FOLDER
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        if "server" in _credentials(settings).renewed:
            context.load_cert_chain(folder / "server.crt", folder / "server.key")


@asynccontextmanager
async def _store_of(settings: Settings) -> AsyncIterator[Store]:
    """Open the store; a folder has one server, whose credentials it holds, with etcd as well."""
    folder = settings.data_dir / STORE_FOLDER
    if settings.etcd is None:
        async with open_store(folder, None) as store:
            yield store
        return
    from mooring.store.sqlite.folder import Folder as StoreFolder

    with StoreFolder(folder):
        async with open_store(folder, settings.etcd) as store:
            yield store


def _context(settings: Settings) -> ssl.SSLContext:
    from mooring.apiserver.tls import server_context

    return server_context(settings.data_dir / CREDENTIALS_FOLDER)


async def _tell(
    server: NetworkServer,
    settings: Settings,
    credentials: Credentials | None,
    on_start: Callable[[str], None],
) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    host = _reached_at(settings)
    if credentials is None:
        url = f"http://{host}:{server.port}"
        token = "" if settings.allows_all else _token(settings)
        text = kubeconfig(url, token)
    else:
        url = f"https://{host}:{server.port}"
        authority, admin = credentials.authority.certificate, credentials.clients[ADMIN]
        text = secure_kubeconfig(url, authority, ADMIN, admin)
    write_private(settings.data_dir / KUBECONFIG_FILE, text)
    on_start(url)
    if server.context is not None:
        await _renew(settings, server.context)


def _reached_at(settings: Settings) -> str:
    """Return the address that clients use, as URLs have it."""
    address = settings.advertised or settings.address
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
    address = loopback.get(address, address)
    return f"[{address}]" if ":" in address else address


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- what is new ----------------------------------------------------------------------------------


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC).replace(microsecond=0))


def _now_exactly() -> Timestamp:
    return Timestamp(datetime.now(UTC))


def _token(settings: Settings) -> str:
    return admin_token(settings.data_dir)
