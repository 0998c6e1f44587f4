"""`moor server`: the API server alone."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.api.gates import Gates
from moorage.apiserver.settings import Auditing, Etcd, Settings
from moorage.cli import CONTEXT
from moorage.cli.command_classes import SectionedCommand
from moorage.cli.errors import fail, needs_extra, needs_system, os_error_text
from moorage.cli.gate_options import gate_options
from moorage.cli.server_options import (
    SECTIONS,
    data_dir_option,
    etcd_options,
    read_runtime,
    server_options,
)
from moorage.cli.terminal import say
from moorage.kit.process_memory import relax_garbage_collector
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.apiserver.auth.users import StaticTokens
    from moorage.validation.pod_security import PodSecurityConfiguration


@click.command(
    name="server",
    cls=SectionedCommand,
    sections=SECTIONS,
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 2 usage error, 3 the directory, the store or the port "
    "cannot be used.",
)
@data_dir_option
@etcd_options
@server_options
@gate_options
@needs_system(System.POSIX)
@needs_extra("server")
def command(data_dir: Path, etcd: Etcd | None, gates: Gates, **given: Any) -> None:
    """Run the API server until interrupted.

    kubectl and any other Kubernetes client can use it: `moor kubeconfig` prints how to reach it.
    On SIGTERM or Ctrl-C it stops after finishing the requests in progress, on the second signal
    immediately.

    \b
    moor server
    moor server --data-dir ./other-cluster --secure-port 7443
    """
    _refuse_combinations(given)
    _run(_settings(data_dir, etcd, gates, given))


def _refuse_combinations(given: dict[str, Any]) -> None:
    from moorage.apiserver.server import is_loopback

    has_roles = given["authorization_mode"] == "RBAC"
    if not has_roles and not is_loopback(given["bind_address"]):
        raise click.UsageError(
            f"--bind-address {given['bind_address']}: without TLS only a loopback address is "
            "allowed"
        )
    for name in ("token_auth_file", "tls_san", "advertise_address"):
        if given[name] and not has_roles:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag}: only with --authorization-mode RBAC")
    if given["audit_policy_file"] and not given["audit_log_path"]:
        raise click.UsageError("--audit-policy-file: only with --audit-log-path")


def _settings(data_dir: Path, etcd: Etcd | None, gates: Gates, given: dict[str, Any]) -> Settings:
    from moorage.apiserver.http.flow_control import Seats
    from moorage.apiserver.settings import Limits
    from moorage.kit.connections import ConnectionLimits

    mode, watches_max = given["authorization_mode"], given["max_watches"]
    reading_max, writing_max = (
        given["max_requests_inflight"],
        given["max_mutating_requests_inflight"],
    )
    return Settings(
        data_dir=data_dir,
        address=given["bind_address"],
        port=given["port"],
        advertised=given["advertise_address"],
        names=given["tls_san"],
        etcd=etcd,
        gates=gates,
        runtime=read_runtime(given["runtime_config"], gates),
        allows_all=mode == "AlwaysAllow",
        has_rbac=mode == "RBAC",
        tokens=_tokens(given["token_auth_file"]),
        issuer=given["service_account_issuer"],
        audiences=given["api_audiences"],
        limits=Limits(request_s=given["request_timeout"], watches_max=watches_max),
        seats=Seats(reading_max, writing_max, watches_max),
        connection_limits=ConnectionLimits(connections_max=given["max_connections"]),
        watch_s_min=given["min_request_timeout"],
        event_ttl_s=int(given["event_ttl"]),
        compact_after_s=given["etcd_compaction_interval"],
        auditing=_auditing(given),
        pod_security=_pod_security(given["admission_control_config_file"]),
    )


def _pod_security(path: Path | None) -> PodSecurityConfiguration:
    from moorage.validation.pod_security import (
        PodSecurityConfiguration,
        PodSecurityConfigurationError,
        read_admission_configuration,
    )

    if path is None:
        return PodSecurityConfiguration()
    try:
        return read_admission_configuration(
            path.read_bytes(), str(path), lambda name: (path.parent / name).read_bytes()
        )
    except (OSError, PodSecurityConfigurationError) as error:
        fail(f"--admission-control-config-file: {error}")


def _auditing(given: dict[str, Any]) -> Auditing | None:
    from moorage.apiserver.audit import DEFAULT_POLICY, AuditPolicyError, Rotation, read_policy

    path: Path | None = given["audit_policy_file"]
    if not given["audit_log_path"]:
        return None
    try:
        policy = DEFAULT_POLICY if path is None else read_policy(path.read_bytes(), str(path))
    except (OSError, AuditPolicyError) as error:
        fail(f"--audit-policy-file: {error}")
    sizes = (f"audit_log_{name}" for name in ("maxsize", "maxbackup", "maxage"))
    return Auditing(given["audit_log_path"], policy, Rotation(*(given[name] for name in sizes)))


def _tokens(path: Path | None) -> StaticTokens:
    from moorage.apiserver.auth.users import StaticTokens, read_tokens
    from moorage.apiserver.errors import TokenFileError

    if path is None:
        return StaticTokens({})
    try:
        return read_tokens(path.read_text("utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError, TokenFileError) as error:
        fail(f"--token-auth-file: {error}")


def _run(settings: Settings) -> None:
    from moorage.apiserver.errors import CredentialsError
    from moorage.cluster.page import serve_with_page
    from moorage.store.errors import StoreError

    def started(url: str) -> None:
        relax_garbage_collector()
        say(f"serving at {url}; kubeconfig: {settings.data_dir / 'kubeconfig'}", err=True)

    try:
        asyncio.run(serve_with_page(settings, started))
    except (StoreError, CredentialsError) as error:
        fail(str(error))
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        hint = "; --secure-port names another port, and 0 takes a free one" if is_taken else ""
        fail(f"{os_error_text(error)}{hint}")
    except KeyboardInterrupt:
        say("stopped", err=True)
