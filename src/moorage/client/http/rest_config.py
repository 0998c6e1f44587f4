"""How to reach a server, as a value, like client-go's rest.Config; and the transport for it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from moorage.client.errors import AccessError
from moorage.client.http.credentials import (
    Credentials,
    RenewedCredentials,
    RequestAuth,
    StaticCredentials,
    Tokens,
    basic,
    bearer,
    make_context,
    token_credentials,
    token_file_source,
)
from moorage.client.http.pool import HttpTransport, address_of
from moorage.kit.clock import REAL

HEADER_LENGTH_MAX = 1024
SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ExecConfig(Struct, frozen=True):
    """A program that prints credentials (the `exec` of a kubeconfig)."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()  # added to our own
    api_version: str = "client.authentication.k8s.io/v1"
    provides_cluster: bool = False  # the program receives the cluster's address
    install_hint: str = ""


class ImpersonationConfig(Struct, frozen=True):
    """The user to impersonate."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


class RestConfig(Struct, frozen=True):
    """A server's address, and how to authenticate it and us."""

    server: str
    namespace: str = "default"
    authority: bytes = b""  # CA certificates, PEM
    skips_verification: bool = False
    server_name: str = ""  # in the server's certificate, if it is not the host
    certificate: bytes = b""  # ours, PEM
    key: bytes = b""
    token: str = ""
    token_file: str = ""
    user: str = ""
    password: str = ""
    command: ExecConfig | None = None
    act_as: ImpersonationConfig | None = None


def in_cluster_config(
    environment: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT_FOLDER
) -> RestConfig | None:
    """Return the config that a pod finds in its environment and folder; None outside of a pod."""
    environment = os.environ if environment is None else environment
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    token = folder / "token"
    if not (host and port and token.exists()):
        return None
    try:
        authority = (folder / "ca.crt").read_bytes()
        named = folder / "namespace"
        namespace = named.read_text().strip() if named.exists() else "default"
    except (OSError, ValueError) as error:
        raise AccessError(f"this seems to be a pod, but {folder} cannot be read: {error}") from None
    bracketed = f"[{host}]" if ":" in host else host
    return RestConfig(
        server=f"https://{bracketed}:{port}",
        namespace=namespace,
        authority=authority,
        token_file=str(token),
    )


def transport_for(
    config: RestConfig, *, agent: str = "moorage", tokens: Tokens | None = None
) -> HttpTransport:
    """Return the transport to a server, or raise AccessError.

    With `tokens`, they are the only credentials.
    """
    address = address_of(config.server)
    certificate = (config.certificate, config.key) if tokens is None else ()
    context = make_context(config, *certificate) if address.is_secure else None
    if tokens is None:
        credentials = _credentials(config, context)
    else:
        credentials = token_credentials(tokens, context)
    return HttpTransport(
        address,
        credentials=credentials,
        server_name=config.server_name,
        agent=_header_value("user agent", agent),
    )


def _credentials(config: RestConfig, context: ssl.SSLContext | None) -> Credentials:
    headers = _impersonation_headers(config.act_as)
    if config.token_file:
        source = token_file_source(Path(config.token_file), headers, context, REAL)
        return RenewedCredentials(source)
    if config.token:
        return StaticCredentials(RequestAuth(headers + bearer(config.token), context))
    if config.command is not None:
        from moorage.client.http.exec_plugin import exec_source

        return RenewedCredentials(exec_source(config, headers, context))
    if config.user:
        return StaticCredentials(
            RequestAuth(headers + basic(config.user, config.password), context)
        )
    return StaticCredentials(RequestAuth(headers, context))


def _impersonation_headers(act_as: ImpersonationConfig | None) -> str:
    if act_as is None:
        return ""
    lines = [("Impersonate-User", act_as.user), ("Impersonate-Uid", act_as.uid)]
    lines += [("Impersonate-Group", group) for group in act_as.groups]
    lines += [(f"Impersonate-Extra-{name}", value) for name, value in act_as.extra]
    return "".join(f"{name}: {_header_value(name, value)}\r\n" for name, value in lines if value)


def _header_value(name: str, value: str) -> str:
    if not value.isprintable() or not value.isascii() or len(value) > HEADER_LENGTH_MAX:
        raise AccessError(f"{name}: {value[:64]!r} cannot be sent in a header")
    return value
