"""The files of a server beside its store: credentials, their renewal, and the kubeconfig.

A file that cannot be written is reported and tried again; the server works meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import (
    ADMIN,
    KUBELET_CLIENT,
    Credentials,
    CredentialsFolder,
    admin_token,
    kubeconfig,
    write_privately,
)
from moorage.apiserver.errors import CredentialsError
from moorage.apiserver.node_proxy.connection import CertificateFiles, NodeIdentity
from moorage.apiserver.settings import Settings

LOG = logging.getLogger(__name__)

KUBECONFIG_FILE = "kubeconfig"
CREDENTIALS_FOLDER = "pki"
COMPONENTS = ("scheduler", "controller-manager")
RENEW_EVERY_S = 12 * 3600
RENEW_AGAIN_S = 60.0  # after that failed
WRITE_AGAIN_S = 5.0


def ensure_credentials(settings: Settings, now: Timestamp) -> Credentials:
    """Return the credentials; the certificate is valid for all names of the server."""
    names, addresses = [], []
    for name in (settings.address, settings.advertised, *settings.names):
        try:
            address = ip_address(name)
        except ValueError:
            names.append(name)
        else:
            addresses += [] if address.is_unspecified else [str(address)]
    folder = CredentialsFolder(settings.data_dir / CREDENTIALS_FOLDER)
    return folder.ensure(now, names=tuple(filter(None, names)), addresses=tuple(addresses))


def node_identity(settings: Settings) -> NodeIdentity:
    """Return the certificate with which the server connects to nodes."""
    folder = settings.data_dir / CREDENTIALS_FOLDER
    own = [folder / f"{KUBELET_CLIENT}.{ending}" for ending in ("crt", "key")]
    return CertificateFiles(folder / "ca.crt", *own)


async def renew_regularly(settings: Settings, context: ssl.SSLContext) -> None:
    """Renew credentials before they expire; new connections use the new certificate."""
    folder = settings.data_dir / CREDENTIALS_FOLDER
    pause_s: float = RENEW_EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        pause_s = RENEW_EVERY_S
        try:
            if "server" in ensure_credentials(settings, _now()).renewed:
                context.load_cert_chain(folder / "server.crt", folder / "server.key")
        except (CredentialsError, OSError) as error:
            LOG.warning("certificates are not renewed: %s", error)
            pause_s = RENEW_AGAIN_S


def url_of(settings: Settings, port: int, *, has_tls: bool) -> str:
    """Return the URL that clients use."""
    return f"{'https' if has_tls else 'http'}://{_reached_at(settings)}:{port}"


def kubeconfig_text(settings: Settings, url: str, credentials: Credentials | None) -> str:
    """Return the kubeconfig of the administrator."""
    if credentials is None:
        token = "" if settings.allows_all else admin_token(settings.data_dir)
        return kubeconfig(url, None, ADMIN, token)
    authority, admin = credentials.authority.certificate, credentials.clients[ADMIN]
    return kubeconfig(url, authority, ADMIN, admin)


def write_component_kubeconfigs(settings: Settings, url: str, credentials: Credentials) -> None:
    """Write the kubeconfigs of the scheduler and the controllers beside their certificates."""
    authority = credentials.authority.certificate
    for user in COMPONENTS:
        text = kubeconfig(url, authority, user, credentials.clients[user])
        path = settings.data_dir / CREDENTIALS_FOLDER / f"{user}.kubeconfig"
        try:
            write_privately(path, text.encode())
        except CredentialsError as error:
            LOG.warning("kubeconfig cannot be written: %s", error)


def try_write_kubeconfig(settings: Settings, text: str) -> bool:
    """Write the kubeconfig, or report why not: clients then have to find the server otherwise."""
    try:
        write_privately(settings.data_dir / KUBECONFIG_FILE, text.encode())
    except CredentialsError as error:
        again = f"the server works without it, and tries again every {WRITE_AGAIN_S:g} s"
        LOG.warning("kubeconfig cannot be written: %s; %s", error, again)
        return False
    return True


async def write_kubeconfig_later(settings: Settings, text: str) -> None:
    """Try to write the kubeconfig until it is written."""
    while True:
        await asyncio.sleep(WRITE_AGAIN_S)
        with suppress(CredentialsError):
            write_privately(settings.data_dir / KUBECONFIG_FILE, text.encode())
            LOG.warning("kubeconfig is written")
            return


def _reached_at(settings: Settings) -> str:
    """Return the host of the URL that clients use."""
    address = settings.advertised or settings.address
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
    address = loopback.get(address, address)
    return f"[{address}]" if ":" in address else address


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC).replace(microsecond=0))
