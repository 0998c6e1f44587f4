"""The settings of a server."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from moorage.api.gates import Gates
from moorage.apiserver.audit.auditor import Rotation
from moorage.apiserver.audit.policy import DEFAULT_POLICY, AuditPolicy
from moorage.apiserver.auth.users import StaticTokens
from moorage.apiserver.http.flow_control import Seats
from moorage.apiserver.resources import EVENT_TTL_S
from moorage.apiserver.runtime_config import RuntimeConfig
from moorage.kit.connections import ConnectionLimits
from moorage.validation.pod_security import PodSecurityConfiguration

ISSUER = "https://kubernetes.default.svc.cluster.local"
WATCH_S = 1800  # the duration of watches that name none
KEPT_S = 300.0  # how far back watches and continued lists can go, at least


class Limits(NamedTuple):
    """Bounds on the size and the duration of requests."""

    body_bytes_max: int = 3 * 1024 * 1024
    bodies_bytes_max: int = 256 * 1024 * 1024  # of all requests that are being read
    unsent_bytes_max: int = 32 * 1024 * 1024  # of all responses that clients have not read
    request_s: float = 60.0
    watches_max: int = 10_000


class Etcd(NamedTuple):
    """The endpoints of an etcd, the prefix of our keys, and the files for TLS."""

    servers: tuple[str, ...]
    root: str = "/moorage/"
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


class Auditing(NamedTuple):
    """The audit log: its file, its policy, and its rotation."""

    path: str  # - is standard output
    policy: AuditPolicy = DEFAULT_POLICY
    rotation: Rotation = Rotation()


class Settings(NamedTuple):
    """All settings of one server."""

    data_dir: Path
    address: str = "127.0.0.1"
    port: int = 6443
    advertised: str = ""  # the address that clients use, if it differs from `address`
    names: tuple[str, ...] = ()  # further names and addresses of its certificate
    etcd: Etcd | None = None
    gates: Gates = Gates.parse()
    runtime: RuntimeConfig = RuntimeConfig()
    allows_all: bool = False
    has_rbac: bool = False  # TLS, certificates, tokens and RBAC; else one token, without TLS
    tokens: StaticTokens = StaticTokens({})
    issuer: str = ISSUER
    audiences: tuple[str, ...] = ()  # of tokens, besides the issuer
    limits: Limits = Limits()
    seats: Seats = Seats()
    connection_limits: ConnectionLimits = ConnectionLimits()
    watch_s_min: int = WATCH_S
    event_ttl_s: int = EVENT_TTL_S
    runs_namespace_controller: bool = True  # False: another controller empties deleted namespaces
    compact_after_s: float = KEPT_S  # how far back watches can go, at least; 0: without bound
    auditing: Auditing | None = None
    pod_security: PodSecurityConfiguration = PodSecurityConfiguration()
