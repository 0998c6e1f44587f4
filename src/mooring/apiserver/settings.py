"""How a server is to run, as values."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mooring.api.gates import Gates
from mooring.apiserver.auditing.log import Rotation
from mooring.apiserver.auditing.policy import DEFAULT_POLICY, Policy
from mooring.apiserver.authentication.statictokens import StaticTokens
from mooring.apiserver.fairness import Seats
from mooring.apiserver.limits import WATCH_S, Limits
from mooring.apiserver.resources import EVENT_TTL_S
from mooring.apiserver.runtimeconfig import RuntimeConfig
from mooring.apiserver.upkeep import KEPT_S
from mooring.kit.connections import Manners

ISSUER = "https://kubernetes.default.svc.cluster.local"


class Etcd(NamedTuple):
    """Where an etcd is, which of its keys are ours, and the files for TLS."""

    servers: tuple[str, ...]
    root: str = "/mooring/"
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


class Auditing(NamedTuple):
    """Where requests are noted, which, and when the file is turned over."""

    path: str  # - is standard output
    policy: Policy = DEFAULT_POLICY
    rotation: Rotation = Rotation()


class Settings(NamedTuple):
    """All about one server."""

    data_dir: Path
    address: str = "127.0.0.1"
    port: int = 6443
    advertised: str = ""  # the address that others reach it by, if it is not the one above
    names: tuple[str, ...] = ()  # further names and addresses of its certificate
    etcd: Etcd | None = None
    gates: Gates = Gates.parse()
    runtime: RuntimeConfig = RuntimeConfig()
    allows_all: bool = False
    has_roles: bool = False  # TLS, certificates and tokens, roles; else one token, without TLS
    tokens: StaticTokens = StaticTokens({})
    issuer: str = ISSUER
    audiences: tuple[str, ...] = ()  # of tokens, besides the issuer
    limits: Limits = Limits()
    seats: Seats = Seats()
    manners: Manners = Manners()
    watch_s_min: int = WATCH_S
    event_ttl_s: int = EVENT_TTL_S
    ends_namespaces: bool = True  # else a controller elsewhere must empty those that are deleted
    kept_s: float = KEPT_S  # how far back watches can go, at the least; 0: for ever
    auditing: Auditing | None = None
