"""Reads kubeconfig files.

Several files are merged: of entries with the same name, the first wins. Relative paths are relative
to the kubeconfig that contains them. Data takes precedence over a file. Of several credentials, a
token file precedes a token, then an exec plugin, then a password.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from moorage.api.documents import KUBERNETES, read
from moorage.api.errors import ApiError
from moorage.client.errors import AccessError
from moorage.client.http.exec_plugin import API_VERSIONS
from moorage.client.http.rest_config import ExecConfig, ImpersonationConfig, RestConfig
from moorage.kit.atomic_file import read_bounded

FILE_BYTES_MAX = 4 * 1024 * 1024
FILES_MAX = 100

V = TypeVar("V")


class _Environment(Struct):
    name: str
    value: str = ""


class _Exec(Struct, rename="camel"):
    command: str | None = None
    args: list[str] | None = None
    env: list[_Environment] | None = None
    api_version: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None
    install_hint: str | None = None


class _Cluster(Struct, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _User(Struct, rename="kebab"):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: _Exec | None = None
    act_as: str | None = msgspec.field(default=None, name="as")
    act_as_uid: str | None = msgspec.field(default=None, name="as-uid")
    act_as_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    act_as_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")
    auth_provider: Any = None


class _Context(Struct):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(Struct):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(Struct):
    name: str
    user: _User | None = None


class _NamedContext(Struct):
    name: str
    context: _Context | None = None


class _Config(Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class _From(Struct, Generic[V]):
    """An entry of a kubeconfig, and the folder of its file."""

    value: V
    folder: Path


class Kubeconfig:
    """One or several kubeconfig files, merged."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._clusters: dict[str, _From[_Cluster]] = {}
        self._users: dict[str, _From[_User]] = {}
        self._contexts: dict[str, _Context] = {}
        self.current = ""
        for path in paths[:FILES_MAX]:
            self._take(_read(path), path.absolute().parent)

    @property
    def contexts(self) -> tuple[str, ...]:
        """The names of the contexts."""
        return tuple(self._contexts)

    def rest_config(self, context: str = "") -> RestConfig:
        """Return the config of a context, by default the current one."""
        name = context or self.current
        if not name:
            raise AccessError("kubeconfig: no current-context is set, and no context is given")
        found = self._contexts.get(name)
        if found is None:
            existing = ", ".join(sorted(self._contexts)) or "none"
            raise AccessError(f"kubeconfig: no context {name!r}; there are: {existing}")
        cluster = self._clusters.get(found.cluster or "")
        if cluster is None:
            raise AccessError(f"context {name!r}: there is no cluster {found.cluster!r}")
        user = self._users.get(found.user or "")
        if user is None and found.user:
            raise AccessError(f"context {name!r}: there is no user {found.user!r}")
        return _rest_config(cluster, user or _From(_User(), Path()), found)

    def _take(self, config: _Config, folder: Path) -> None:
        for c in config.clusters or ():
            self._clusters.setdefault(c.name, _From(c.cluster or _Cluster(), folder))
        for u in config.users or ():
            self._users.setdefault(u.name, _From(u.user or _User(), folder))
        for x in config.contexts or ():
            self._contexts.setdefault(x.name, x.context or _Context())
        self.current = self.current or config.current_context or ""


def read_kubeconfig(
    path: str = "", *, context: str = "", environment: Mapping[str, str] | None = None
) -> RestConfig:
    """Return the config from a kubeconfig: the given one, $KUBECONFIG, or ~/.kube/config."""
    paths = kubeconfig_paths(path, environment)
    found = [each for each in paths if each.exists()]
    if path and not found:
        raise AccessError(f"kubeconfig {path}: there is no such file")
    if not found:
        named = ", ".join(map(str, paths))
        raise AccessError(f"no kubeconfig: there is no {named}; set KUBECONFIG or name a file")
    return Kubeconfig(found).rest_config(context)


def kubeconfig_paths(path: str, environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the kubeconfig files to read, whether they exist or not."""
    environment = os.environ if environment is None else environment
    if path:
        return [Path(path)]
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        return [Path(part) for part in dict.fromkeys(named)]
    return [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def _read(path: Path) -> _Config:
    data = _file(path, "kubeconfig")
    try:
        documents = list(read(data, source=str(path), schema=KUBERNETES))
        if not documents:
            return _Config()
        return msgspec.convert(documents[0].tree or {}, _Config)
    except (ApiError, msgspec.ValidationError, RecursionError) as error:
        raise AccessError(f"kubeconfig {path}: {error}") from None


def _file(path: Path, what: str) -> bytes:
    try:
        return read_bounded(path, FILE_BYTES_MAX)
    except OSError as error:
        raise AccessError(f"{what} {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise AccessError(f"{what} {path}: {error}") from None


def _rest_config(cluster: _From[_Cluster], user: _From[_User], context: _Context) -> RestConfig:
    c, u = cluster.value, user.value
    if not c.server:
        raise AccessError(f"cluster {context.cluster!r}: no server is given")
    if c.proxy_url:
        raise AccessError(f"cluster {context.cluster!r}: proxy-url is not supported")
    if u.auth_provider is not None:
        raise AccessError(f"user {context.user!r}: auth-provider is gone; use exec instead")
    if c.insecure_skip_tls_verify and (c.certificate_authority or c.certificate_authority_data):
        raise AccessError(
            f"cluster {context.cluster!r}: insecure-skip-tls-verify and a certificate-authority "
            "exclude each other"
        )
    folder, own = cluster.folder, user.folder
    return RestConfig(
        server=c.server,
        namespace=context.namespace or "default",
        authority=_data(c.certificate_authority_data, c.certificate_authority, folder, "ca"),
        skips_verification=bool(c.insecure_skip_tls_verify),
        server_name=c.tls_server_name or "",
        certificate=_data(u.client_certificate_data, u.client_certificate, own, "client cert"),
        key=_data(u.client_key_data, u.client_key, own, "client key"),
        token=u.token or "",
        token_file=str(own / u.token_file) if u.token_file else "",
        user=u.username or "",
        password=u.password or "",
        command=_command(u.exec, own, context.user or ""),
        act_as=_act_as(u),
    )


def _data(data: str | None, path: str | None, folder: Path, what: str) -> bytes:
    """Return data in base64, or else the content of a file."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise AccessError(f"kubeconfig: {what} data is not base64: {error}") from None
    return _file(folder / path, what) if path else b""


def _command(found: _Exec | None, folder: Path, user: str) -> ExecConfig | None:
    if found is None:
        return None
    if not found.command:
        raise AccessError(f"user {user!r}: exec has no command")
    if found.api_version not in API_VERSIONS:
        supported = " or ".join(API_VERSIONS)
        raise AccessError(f"user {user!r}: exec.apiVersion must be {supported}")
    if found.interactive_mode == "Always":
        raise AccessError(f"user {user!r}: exec requires a terminal (interactiveMode: Always)")
    is_path = os.sep in found.command and not Path(found.command).is_absolute()
    return ExecConfig(
        program=str(folder / found.command) if is_path else found.command,
        arguments=tuple(found.args or ()),
        environment=tuple((each.name, each.value) for each in found.env or ()),
        api_version=found.api_version,
        provides_cluster=bool(found.provide_cluster_info),
        install_hint=found.install_hint or "",
    )


def _act_as(user: _User) -> ImpersonationConfig | None:
    if not user.act_as:
        return None
    extra = user.act_as_extra or {}
    return ImpersonationConfig(
        user=user.act_as,
        uid=user.act_as_uid or "",
        groups=tuple(user.act_as_groups or ()),
        extra=tuple((name, value) for name, values in extra.items() for value in values),
    )
