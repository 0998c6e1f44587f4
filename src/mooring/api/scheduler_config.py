"""kubescheduler.config.k8s.io/v1: the configuration file of the scheduler.

Every field of Kubernetes 1.37 is declared; any other is an error. Durations are texts such as
`600s`, as in the file; `duration_ns` reads them. The arguments of plugins are in
`mooring.api.scheduler_plugin_args`.
"""

from __future__ import annotations

import re

from mooring.api.errors import DecodeError
from mooring.api.kinds import Kind, declare_kind
from mooring.api.meta import Json
from mooring.api.scheduler_plugin_args import (
    API_VERSION,
    DYNAMIC_RESOURCES,
    DynamicResourcesArgs,
    read_args,
)
from mooring.api.structs import Closed, Int32, Int64, always

_INT64_MAX = 2**63 - 1
_SECOND_NS = 1_000_000_000


class SchedulerPlugin(Closed, frozen=True, gc=False):
    """A plugin and its weight in scoring."""

    name: str = always("")
    weight: Int32 | None = None


class PluginSet(Closed, frozen=True, gc=False):
    """Plugins that are switched on or off at an extension point."""

    enabled: tuple[SchedulerPlugin, ...] = ()
    disabled: tuple[SchedulerPlugin, ...] = ()


NO_PLUGINS = PluginSet()


class Plugins(Closed, frozen=True, gc=False):
    """The plugins at each extension point; `multiPoint` is for all that a plugin has."""

    pre_enqueue: PluginSet = NO_PLUGINS
    queue_sort: PluginSet = NO_PLUGINS
    pre_filter: PluginSet = NO_PLUGINS
    filter: PluginSet = NO_PLUGINS
    post_filter: PluginSet = NO_PLUGINS
    pre_score: PluginSet = NO_PLUGINS
    score: PluginSet = NO_PLUGINS
    reserve: PluginSet = NO_PLUGINS
    permit: PluginSet = NO_PLUGINS
    pre_bind: PluginSet = NO_PLUGINS
    bind: PluginSet = NO_PLUGINS
    post_bind: PluginSet = NO_PLUGINS
    multi_point: PluginSet = NO_PLUGINS
    placement_generate: PluginSet = NO_PLUGINS
    placement_score: PluginSet = NO_PLUGINS
    pod_group_post_filter: PluginSet = NO_PLUGINS


class PluginConfig(Closed, frozen=True, gc=False):
    """The arguments of one plugin."""

    name: str = always("")
    args: Json = None


class KubeSchedulerProfile(Closed, frozen=True, gc=False):
    """One scheduler by name, with its plugins."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElectionConfiguration(Closed, frozen=True, gc=False):
    """Which of several schedulers works: the one that holds the lease."""

    leader_elect: bool | None = None
    lease_duration: str | None = None
    renew_deadline: str | None = None
    retry_period: str | None = None
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnectionConfiguration(Closed, frozen=True, gc=False):
    """How the API server is reached, and how often it may be asked."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: Json = None  # a number
    burst: Int32 = 0


class KubeSchedulerConfiguration(Closed, frozen=True, gc=False):
    """Everything that can be set for a scheduler."""

    api_version: str = always(API_VERSION)
    kind: str = always("KubeSchedulerConfiguration")
    parallelism: Int32 | None = None
    leader_election: LeaderElectionConfiguration | None = None
    client_connection: ClientConnectionConfiguration | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Json, ...] = ()
    delay_cache_until_active: bool = False


def dynamic_resources_args(profile: KubeSchedulerProfile) -> DynamicResourcesArgs | None:
    """Return the profile's arguments for claims, or None where it has none."""
    for config in profile.plugin_config:
        if config.name == DYNAMIC_RESOURCES:
            args, _ = read_args(DYNAMIC_RESOURCES, config.args, DynamicResourcesArgs)
            for text in (args.filter_timeout, args.binding_timeout):
                if text is not None:
                    duration_ns(text)
            return args
    return None


# --- durations ----------------------------------------------------------------------------

_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter
    "ms": 1_000_000,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
}

_match_part = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)").match


def duration_ns(text: str) -> int:
    """duration = [ "+" | "-" ] ( "0" | part+ );  part = ( digits | digits "." digits ) unit

    Return the nanoseconds, or raise DecodeError with the text of Go's time.ParseDuration.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise _wrong_duration(text)
    total = 0
    while rest:
        part, rest = _read_part(text, rest)
        total += part
    is_negative = text[0] == "-"
    if total > _INT64_MAX + is_negative:
        raise _wrong_duration(text)
    return -total if is_negative else total


def duration_text(nanoseconds: int) -> str:
    """Return the duration as Go prints it: `1h2m3.5s`, `500ms`, `0s`."""
    minus, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    if rest < _SECOND_NS:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS_NS[unit])
        return minus + _decimal(rest, _UNITS_NS[unit]) + unit
    minutes, rest = divmod(rest, 60 * _SECOND_NS)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return minus + text + _decimal(rest, _SECOND_NS) + "s"


def _read_part(text: str, rest: str) -> tuple[int, str]:
    """Return the nanoseconds of the first part, and what follows it."""
    match = _match_part(rest)
    assert match is not None  # every group may be empty
    whole, fraction, unit = match.groups()
    if not whole and not fraction:
        raise _wrong_duration(text)
    if not unit:
        raise DecodeError(f'time: missing unit in duration "{text[:64]}"')
    if unit not in _UNITS_NS:
        raise DecodeError(f'time: unknown unit "{unit[:64]}" in duration "{text[:64]}"')
    if len(whole.lstrip("0")) > 19:
        raise _wrong_duration(text)
    scale = _UNITS_NS[unit]
    digits = (fraction or "")[:18]
    return int(whole or "0") * scale + int(digits or "0") * scale // 10 ** len(digits), rest[
        match.end() :
    ]


def _decimal(value: int, scale: int) -> str:
    whole, rest = divmod(value, scale)
    if not rest:
        return str(whole)
    places = len(str(scale)) - 1
    return f"{whole}.{rest:0{places}d}".rstrip("0")


def _wrong_duration(text: str) -> DecodeError:
    return DecodeError(f'time: invalid duration "{text[:64]}"')


# Without a plural: no server serves them.
KINDS: tuple[Kind, ...] = tuple(
    declare_kind(struct, "", namespaced=False)
    for struct in (KubeSchedulerConfiguration, DynamicResourcesArgs)
)
