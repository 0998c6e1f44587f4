"""The options of `moor server`, by kube-apiserver's names where it has one, and their sections."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from moorage.api.gates import Gates
from moorage.cli.command_classes import Duration, Sections, add_options, option_with_default
from moorage.cli.gate_options import GATES
from moorage.cli.terminal import echo
from moorage.kit.extras import require

if TYPE_CHECKING:
    from moorage.apiserver.runtime_config import RuntimeConfig
    from moorage.apiserver.settings import Etcd

F = TypeVar("F", bound=Callable[..., Any])

DATA_DIR, DATA_DIR_VARIABLE = "moorage-data", "MOORAGE_DATA_DIR"

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
    ("What is served", ("runtime_config", "admission_control_config_file", *GATES)),
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
    return option_with_default(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=DATA_DIR,
        envvar=DATA_DIR_VARIABLE,
        help="Directory of the server's store, credentials and kubeconfig.",
    )(function)


def listen_options(function: F) -> F:
    """Add the address and the port of a cluster's API server."""
    port = option_with_default(
        "--secure-port",
        "--port",
        "port",
        type=click.IntRange(0, 65535),
        default=6443,
        help="Port to listen on; 0 picks a free one.",
    )
    address = option_with_default(
        "--bind-address", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on."
    )
    return address(port(function))


runtime_config_option: Final = click.option(
    "--runtime-config",
    default="",
    metavar="API=BOOL,…",
    help="API versions to enable or disable: api/all, api/ga, api/beta, api/alpha, "
    "GROUP/VERSION, GROUP/VERSION/RESOURCE. Stored objects are kept.",
)


without_option: Final = click.option(
    "--without",
    multiple=True,
    type=click.Choice(["scheduler", "controllers"]),
    help="Part to leave out, because another program takes its place, such as kube-scheduler "
    "or kube-controller-manager. May be repeated.",
)


def read_runtime(text: str, gates: Gates) -> RuntimeConfig:
    """Parse --runtime-config, and warn where feature gates make it ineffective."""
    from moorage.apiserver.errors import RuntimeConfigError
    from moorage.apiserver.runtime_config import read_runtime_config

    try:
        config = read_runtime_config(text)
    except RuntimeConfigError as error:
        raise click.UsageError(f"--runtime-config: {error}") from None
    for note in config.notes(gates):
        echo(f"note: --runtime-config: {note}", err=True)
    return config


_OPTIONS: Final = (
    option_with_default(
        "--event-ttl",
        type=Duration(1, 366 * 24 * 3600),
        default="1h",
        help="How long to keep events.",
    ),
    option_with_default(
        "--etcd-compaction-interval",
        type=Duration(0, 366 * 24 * 3600),
        default="5m",
        help="Minimum history kept for watches and lists; 0 disables compaction.",
    ),
    option_with_default(
        "--bind-address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="Address to listen on; without TLS, loopback only.",
    ),
    option_with_default(
        "--secure-port",
        "--port",
        "port",
        type=click.IntRange(0, 65535),
        default=6443,
        help="Port to listen on; 0 picks a free one.",
    ),
    click.option(
        "--advertise-address",
        default="",
        metavar="IP",
        callback=_address,
        help="Address that clients use, if it differs from --bind-address.",
    ),
    click.option(
        "--tls-san",
        multiple=True,
        metavar="NAME,…",
        callback=_names,
        help="Additional hostnames and IP addresses for the serving certificate.",
    ),
    option_with_default(
        "--authorization-mode",
        type=click.Choice(["RBAC", "Token", "AlwaysAllow"]),
        default="RBAC",
        help="Authentication: TLS with certificates, tokens and RBAC; or, without TLS, full "
        "access for bearers of a token, or for everyone on this machine.",
    ),
    click.option(
        "--token-auth-file",
        type=_FILE,
        help='Static token file: lines of token,user,uid,"group1,group2".',
    ),
    option_with_default(
        "--service-account-issuer",
        default="https://kubernetes.default.svc.cluster.local",
        metavar="URL",
        help="Issuer of service account tokens.",
    ),
    click.option(
        "--api-audiences",
        default="",
        metavar="NAME,…",
        callback=_list,
        help="Accepted audiences of service account tokens. By default, the issuer.",
    ),
    runtime_config_option,
    option_with_default(
        "--max-requests-inflight",
        type=click.IntRange(1, 100_000),
        default=400,
        help="Maximum concurrent read requests, shared fairly between users.",
    ),
    option_with_default(
        "--max-mutating-requests-inflight",
        type=click.IntRange(1, 100_000),
        default=200,
        help="Maximum concurrent write requests, shared fairly between users.",
    ),
    option_with_default(
        "--max-watches",
        type=click.IntRange(1, 1_000_000),
        default=10_000,
        help="Maximum open watches, shared fairly between users.",
    ),
    option_with_default(
        "--max-connections",
        type=click.IntRange(1, 1_000_000),
        default=20_000,
        help="Maximum open connections; further ones are closed.",
    ),
    option_with_default(
        "--request-timeout",
        type=Duration(1, 3600),
        default="1m",
        help="Maximum duration of a request, including its body, other than watches.",
    ),
    option_with_default(
        "--min-request-timeout",
        type=click.IntRange(1, 24 * 3600),
        default=1800,
        metavar="SECONDS",
        help="Minimum duration of a watch without timeoutSeconds; the maximum is twice that.",
    ),
    click.option(
        "--admission-control-config-file",
        type=_FILE,
        help="Configuration of admission plugins: defaults and exemptions of PodSecurity.",
    ),
    click.option(
        "--audit-log-path",
        default="",
        metavar="FILE",
        help="Audit log file, one JSON event per line; - is standard output.",
    ),
    click.option(
        "--audit-policy-file",
        type=_FILE,
        help="Audit policy file. By default, all requests are logged without bodies.",
    ),
    option_with_default(
        "--audit-log-maxsize",
        type=click.IntRange(0, 1_000_000),
        default=100,
        metavar="MB",
        help="Maximum size of the audit log before it is rotated; 0 means unlimited.",
    ),
    option_with_default(
        "--audit-log-maxbackup",
        type=click.IntRange(0, 1_000_000),
        default=0,
        help="Maximum number of rotated audit logs to keep; 0 keeps all.",
    ),
    option_with_default(
        "--audit-log-maxage",
        type=click.IntRange(0, 1_000_000),
        default=0,
        metavar="DAYS",
        help="Maximum age of rotated audit logs; 0 keeps them forever.",
    ),
)


def server_options(function: F) -> F:
    """Add the options to a command; it gets an argument for each."""
    return add_options(function, _OPTIONS)


# --- etcd -------------------------------------------------------------------------------------


def etcd_options(function: F) -> F:
    """Add the options to a command; it gets an `etcd` argument, None without servers."""

    @wraps(function)  # with the options that the function has already
    def with_etcd(
        *args: Any,
        etcd_servers: str,
        etcd_prefix: str,
        etcd_cafile: Path | None,
        etcd_certfile: Path | None,
        etcd_keyfile: Path | None,
        **kwargs: Any,
    ) -> Any:
        files = (etcd_cafile, etcd_certfile, etcd_keyfile)
        etcd = _etcd(etcd_servers, etcd_prefix, files)
        return function(*args, etcd=etcd, **kwargs)

    return add_options(with_etcd, _ETCD_OPTIONS)  # type: ignore[return-value]


_ETCD_OPTIONS: Final = (
    click.option(
        "--etcd-servers",
        default="",
        metavar="URL,…",
        help="Store objects in etcd instead of SQLite: the client URLs of its members.",
    ),
    option_with_default(
        "--etcd-prefix",
        default="/moorage",
        metavar="PATH",
        help="Prefix of all keys in etcd.",
    ),
    click.option(
        "--etcd-cafile", type=_FILE, help="CA file that verifies etcd's server certificate."
    ),
    click.option("--etcd-certfile", type=_FILE, help="Client certificate for etcd."),
    click.option("--etcd-keyfile", type=_FILE, help="Private key of the client certificate."),
)


def _etcd(servers: str, prefix: str, files: tuple[Path | None, ...]) -> Etcd | None:
    authority, certificate, key = files
    urls = tuple(part.strip() for part in servers.split(",") if part.strip())
    if (certificate is None) != (key is None):
        raise click.UsageError("--etcd-certfile and --etcd-keyfile: both, or neither")
    if not urls:
        if any(files):
            raise click.UsageError("--etcd-cafile, --etcd-certfile: only with --etcd-servers")
        return None
    for url in urls:
        if any(files) and not url.startswith("https://"):
            raise click.UsageError(
                f"--etcd-servers: {url}: --etcd-cafile and the like need https://"
            )
    if not prefix.startswith("/") or not prefix.strip("/"):
        raise click.UsageError(f"--etcd-prefix: {prefix!r} must begin with / and name something")
    from moorage.apiserver.settings import Etcd

    etcd = Etcd(urls, f"{prefix.rstrip('/')}/", authority, certificate, key)
    require("server")
    from moorage.store.errors import BadRequestError
    from moorage.store.etcd import read_endpoint

    for url in urls:
        try:
            read_endpoint(url)
        except BadRequestError as error:
            raise click.UsageError(f"--etcd-servers: {error}") from None
    return etcd
