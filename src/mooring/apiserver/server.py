"""A server that runs: the store, the application, the network, and what goes on beside them."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from mooring.api.gates import Gates
from mooring.api.timestamp import Timestamp
from mooring.apiserver.app import Application, Limits
from mooring.apiserver.authentication.authenticator import Authenticator
from mooring.apiserver.authentication.serviceaccounts import Issuer
from mooring.apiserver.authentication.statictokens import StaticTokens
from mooring.apiserver.credentials import ADMIN, Credentials, Folder
from mooring.apiserver.discovery import Discovery, version_document
from mooring.apiserver.guard import Guard
from mooring.apiserver.guarding import Follower, RoleSecurity, finder, make_roles
from mooring.apiserver.kubeconfig import kubeconfig as secure_kubeconfig
from mooring.apiserver.namespaces import NamespaceEnd, make_namespaces
from mooring.apiserver.naming import new_suffix, new_uid
from mooring.apiserver.openapi import OpenAPI
from mooring.apiserver.registry import Registry
from mooring.apiserver.resources import Resources
from mooring.apiserver.router import Fixed, Router
from mooring.apiserver.security import AdminToken, AllowAll, Security
from mooring.apiserver.service import Service
from mooring.apiserver.upkeep import KEPT_S, compact_regularly
from mooring.store.contract import Store

if TYPE_CHECKING:
    from mooring.apiserver.network import NetworkServer

TOKEN_FILE = "admin-token"  # noqa: S105  # its name, not the token
KUBECONFIG_FILE = "kubeconfig"
CREDENTIALS_FOLDER = "pki"
RENEW_EVERY_S = 12 * 3600

ISSUER = "https://kubernetes.default.svc.cluster.local"


class Settings(NamedTuple):
    """How a server is to run."""

    data_dir: Path
    address: str = "127.0.0.1"
    port: int = 6443
    etcd_servers: tuple[str, ...] = ()
    gates: Gates = Gates.parse()
    allows_all: bool = False
    has_roles: bool = False  # TLS, certificates and tokens, roles; else one token, without TLS
    tokens: StaticTokens = StaticTokens({})
    limits: Limits = Limits()
    kept_s: float = KEPT_S  # how far back watches can go, at the least; 0: for ever


def make_service(
    store: Store,
    *,
    gates: Gates | None = None,
    now: Callable[[], Timestamp] | None = None,
    extensions: bool = True,
) -> Service:
    """Return what the verbs need, on a store."""
    return Service(
        registry=Registry(store),
        resources=Resources(),
        gates=gates or Gates.parse(),
        now=now or _now,
        new_uid=new_uid,
        new_suffix=new_suffix,
        extensions=extensions,
    )


def make_application(
    service: Service, security: Security, *, address: str = "", limits: Limits | None = None
) -> Application:
    """Return the ASGI application of a service."""
    fixed = Fixed(
        discovery=Discovery(service.resources),
        openapi=OpenAPI(service.resources),
        version=version_document(
            python_version=platform.python_version(),
            platform=f"{platform.system().lower()}/{platform.machine()}",
        ),
        address=address,
    )
    return Application(Router(service, security, fixed), limits or Limits())


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address."""
    if address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


async def serve(settings: Settings, on_start: Callable[[str], None] = lambda _: None) -> None:
    """Run a server until it is told to stop; `on_start` gets its URL."""
    from mooring.apiserver.network import NetworkServer

    settings.data_dir.mkdir(parents=True, exist_ok=True)
    async with _store_of(settings) as store, AsyncExitStack() as stack:
        service = make_service(store, gates=settings.gates)
        await make_namespaces(service)
        ending = asyncio.create_task(NamespaceEnd(service).run())
        stack.push_async_callback(_stopped, ending)
        if settings.kept_s:
            compacting = asyncio.create_task(compact_regularly(store, settings.kept_s))
            stack.push_async_callback(_stopped, compacting)
        credentials: Credentials | None = None
        if settings.has_roles:
            guarded = await _guarded(settings, service, stack)
            service, security, credentials = guarded
        else:
            security = AllowAll() if settings.allows_all else AdminToken(_token(settings))
        where = f"{settings.address}:{settings.port}"
        application = make_application(service, security, address=where, limits=settings.limits)
        server = NetworkServer(application, settings.address, settings.port)
        if settings.has_roles:
            _secure(server, settings)
        waiting = asyncio.create_task(_tell(server, settings, credentials, on_start))
        stack.push_async_callback(_stopped, waiting)
        try:
            await server.serve()
        except asyncio.CancelledError:
            if server.started:
                await server.shutdown()
            raise


async def _guarded(
    settings: Settings, service: Service, stack: AsyncExitStack
) -> tuple[Service, Security, Credentials]:
    """Return a service that asks a guard, the guard's security, and what it is known by."""
    credentials = _credentials(settings)
    guard = Guard(settings.gates)
    service = replace(service, guard=guard)
    await make_roles(service)
    follower = Follower(service, guard)
    await follower.load()
    following = asyncio.create_task(follower.run())
    stack.push_async_callback(_stopped, following)
    issuer = Issuer(ISSUER, (credentials.signing_key.public,), (ISSUER,))
    authenticator = Authenticator(issuer, finder(service), service.now, settings.tokens)
    return service, RoleSecurity(guard, authenticator), credentials


def _credentials(settings: Settings) -> Credentials:
    folder = Folder(settings.data_dir / CREDENTIALS_FOLDER)
    try:
        address = ip_address(settings.address)
    except ValueError:
        return folder.ensure(_now(), names=(settings.address,))
    addresses = () if address.is_unspecified else (str(address),)
    return folder.ensure(_now(), addresses=addresses)


async def _renew(settings: Settings, context: ssl.SSLContext) -> None:
    """Renew credentials in time; new connections get the new certificate."""
    folder = settings.data_dir / CREDENTIALS_FOLDER
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        if "server" in _credentials(settings).renewed:
            context.load_cert_chain(folder / "server.crt", folder / "server.key")


@asynccontextmanager
async def _store_of(settings: Settings) -> AsyncIterator[Store]:
    if settings.etcd_servers:
        from mooring.store.etcd import open_etcd

        async with open_etcd(settings.etcd_servers[0].removeprefix("http://")) as etcd:
            yield etcd
    else:
        from mooring.store.sqlite import open_sqlite

        async with open_sqlite(settings.data_dir / "store") as sqlite:
            yield sqlite


def _secure(server: NetworkServer, settings: Settings) -> None:
    from mooring.apiserver.tls import server_context

    folder, config = settings.data_dir / CREDENTIALS_FOLDER, server.config
    config.ssl_certfile, config.ssl_keyfile = folder / "server.crt", str(folder / "server.key")
    config.load()
    config.ssl = server_context(folder)


async def _tell(
    server: NetworkServer,
    settings: Settings,
    credentials: Credentials | None,
    on_start: Callable[[str], None],
) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    address = "127.0.0.1" if settings.address == "0.0.0.0" else settings.address  # noqa: S104
    host = f"[{address}]" if ":" in address else address
    if credentials is None:
        url = f"http://{host}:{server.port}"
        token = "" if settings.allows_all else _token(settings)
        text = kubeconfig(url, token)
    else:
        url = f"https://{host}:{server.port}"
        authority, admin = credentials.authority.certificate, credentials.clients[ADMIN]
        text = secure_kubeconfig(url, authority, ADMIN, admin)
    _write_private(settings.data_dir / KUBECONFIG_FILE, text)
    on_start(url)
    if credentials is not None and server.config.ssl is not None:
        await _renew(settings, server.config.ssl)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- credentials ----------------------------------------------------------------------------------


def kubeconfig(url: str, token: str) -> str:
    """Return the text of a kubeconfig for the server."""
    user = f"    token: {token}\n" if token else ""
    return (
        "apiVersion: v1\n"
        "kind: Config\n"
        "clusters:\n"
        "- name: mooring\n"
        "  cluster:\n"
        f"    server: {url}\n"
        "users:\n"
        "- name: admin\n"
        f"  user:{chr(10) + user if user else ' {}' + chr(10)}"
        "contexts:\n"
        "- name: admin@mooring\n"
        "  context: {cluster: mooring, user: admin, namespace: default}\n"
        "current-context: admin@mooring\n"
    )


def _token(settings: Settings) -> str:
    path = settings.data_dir / TOKEN_FILE
    if not path.exists():
        _write_private(path, f"{secrets.token_urlsafe(32)}\n")
    return path.read_text().strip()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, at once or not at all."""
    mode = stat.S_IRUSR | stat.S_IWUSR
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


# --- what is new ----------------------------------------------------------------------------------


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC)).truncated()
