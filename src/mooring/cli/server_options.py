"""The options of `moor server`, by kube-apiserver's names where it has one, and their sections."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mooring.api.gates import Gates
from mooring.cli.command_classes import Sections
from mooring.cli.duration import Duration

if TYPE_CHECKING:
    from mooring.apiserver.runtimeconfig import RuntimeConfig

F = TypeVar("F", bound=Callable[..., Any])

DATA_DIR = "mooring-data"

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", re.IGNORECASE)


def _address(_: click.Context, __: click.Parameter, text: str) -> str:
    if not text:
        return ""
    try:
        address = ip_address(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no IP address") from None
    if address.is_unspecified:
        raise click.BadParameter(f"{text!r} is no address that clients can reach")
    return str(address)


def _names(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    listed = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    for name in listed:
        try:
            ip_address(name)
        except ValueError:
            if not _HOST.fullmatch(name):
                raise click.BadParameter(f"{name!r} is no DNS name and no IP address") from None
    return tuple(listed)


def _list(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


SECTIONS: Final[Sections] = (
    ("Folder and store", ("data_dir", "event_ttl", "etcd_compaction_interval")),
    (
        "etcd",
        ("etcd_servers", "etcd_prefix", "etcd_cafile", "etcd_certfile", "etcd_keyfile"),
    ),
    ("Listening", ("bind_address", "port", "advertise_address", "tls_san")),
    (
        "Who may use it",
        ("authorization_mode", "token_auth_file", "service_account_issuer", "api_audiences"),
    ),
    (
        "What is served",
        ("runtime_config", "feature_gates", "gates_preset", "emulated_version"),
    ),
    (
        "Limits",
        (
            "max_requests_inflight",
            "max_mutating_requests_inflight",
            "max_watches",
            "max_connections",
            "request_timeout",
            "min_request_timeout",
        ),
    ),
    (
        "Audit log",
        (
            "audit_log_path",
            "audit_policy_file",
            "audit_log_maxsize",
            "audit_log_maxbackup",
            "audit_log_maxage",
        ),
    ),
)


def data_dir_option(function: F) -> F:
    """Add --data-dir, the same for every command about a server."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=DATA_DIR,
        show_default=True,
        envvar="MOORING_DATA_DIR",
        help="The folder of the server: its store, its credentials, its kubeconfig.",
    )(function)


runtime_config_option: Final = click.option(
    "--runtime-config",
    default="",
    metavar="API=BOOL,…",
    help="Versions to serve or not: api/all, api/ga, api/beta, api/alpha, GROUP/VERSION, "
    "GROUP/VERSION/RESOURCE. What is stored stays.",
)


def read_runtime(text: str, gates: Gates) -> RuntimeConfig:
    """Return what --runtime-config says, and tell what of it the gates leave without effect."""
    from mooring.apiserver.runtimeconfig import RuntimeConfigError, read_runtime_config

    try:
        config = read_runtime_config(text)
    except RuntimeConfigError as error:
        raise click.UsageError(f"--runtime-config: {error}") from None
    for note in config.notes(gates):
        click.echo(f"note: --runtime-config: {note}", err=True)
    return config


_OPTIONS: Final = (
    click.option(
        "--event-ttl",
        type=Duration(1, 366 * 24 * 3600),
        default="1h",
        show_default=True,
        help="How long events are kept.",
    ),
    click.option(
        "--etcd-compaction-interval",
        type=Duration(0, 366 * 24 * 3600),
        default="5m",
        show_default=True,
        help="How far back watches and lists can go, at the least; 0 forgets nothing.",
    ),
    click.option(
        "--bind-address",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="The address to listen at; others than this machine's own only with TLS.",
    ),
    click.option(
        "--secure-port",
        "--port",
        "port",
        type=click.IntRange(0, 65535),
        default=6443,
        show_default=True,
        help="The port to listen at; 0 takes a free one.",
    ),
    click.option(
        "--advertise-address",
        default="",
        metavar="IP",
        callback=_address,
        help="The address that clients use, if it is not the one to listen at.",
    ),
    click.option(
        "--tls-san",
        multiple=True,
        metavar="NAME,…",
        callback=_names,
        help="Further names and addresses of the server's certificate.",
    ),
    click.option(
        "--authorization-mode",
        type=click.Choice(["RBAC", "Token", "AlwaysAllow"]),
        default="RBAC",
        show_default=True,
        help="TLS with certificates, tokens and roles (RBAC); or, without TLS, everything for "
        "bearers of a token, or for everybody on this machine.",
    ),
    click.option(
        "--token-auth-file",
        type=_FILE,
        help='A file of tokens: lines of token,user,uid,"group1,group2".',
    ),
    click.option(
        "--service-account-issuer",
        default="https://kubernetes.default.svc.cluster.local",
        show_default=True,
        metavar="URL",
        help="Whom tokens of service accounts name as their issuer.",
    ),
    click.option(
        "--api-audiences",
        default="",
        metavar="NAME,…",
        callback=_list,
        help="Whom such tokens must be for; the issuer, unless named.",
    ),
    runtime_config_option,
    click.option(
        "--max-requests-inflight",
        type=click.IntRange(1, 100_000),
        default=400,
        show_default=True,
        help="How many requests that read are worked on at once; users share them fairly.",
    ),
    click.option(
        "--max-mutating-requests-inflight",
        type=click.IntRange(1, 100_000),
        default=200,
        show_default=True,
        help="How many requests that write are worked on at once; users share them fairly.",
    ),
    click.option(
        "--max-watches",
        type=click.IntRange(1, 1_000_000),
        default=10_000,
        show_default=True,
        help="How many watches are open at once; users share them fairly.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(1, 1_000_000),
        default=20_000,
        show_default=True,
        help="How many connections are open at once; more are closed as they come.",
    ),
    click.option(
        "--request-timeout",
        type=Duration(1, 3600),
        default="1m",
        show_default=True,
        help="How long a request may take, its body included; watches have their own time.",
    ),
    click.option(
        "--min-request-timeout",
        type=click.IntRange(1, 24 * 3600),
        default=1800,
        show_default=True,
        metavar="SECONDS",
        help="How long a watch that names no time stays open at the least; twice that at most.",
    ),
    click.option(
        "--audit-log-path",
        default="",
        metavar="FILE",
        help="Note requests in a file, one line of JSON each; - is standard output.",
    ),
    click.option(
        "--audit-policy-file",
        type=_FILE,
        help="Which requests are noted, and how much of them; without it, all, without bodies.",
    ),
    click.option(
        "--audit-log-maxsize",
        type=click.IntRange(0, 1_000_000),
        default=100,
        show_default=True,
        metavar="MB",
        help="How large the file gets before a new one is begun; 0: as large as it may.",
    ),
    click.option(
        "--audit-log-maxbackup",
        type=click.IntRange(0, 1_000_000),
        default=0,
        show_default=True,
        help="How many older files are kept; 0: all.",
    ),
    click.option(
        "--audit-log-maxage",
        type=click.IntRange(0, 1_000_000),
        default=0,
        show_default=True,
        metavar="DAYS",
        help="How long older files are kept; 0: for ever.",
    ),
)


def server_options(function: F) -> F:
    """Add the options to a command; it gets an argument for each."""
    decorated: Any = function
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result
