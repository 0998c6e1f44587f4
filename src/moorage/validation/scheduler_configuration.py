"""Defaults and rules of KubeSchedulerConfiguration.

Defaults are those of Kubernetes, so that a configuration with defaults shows everything that a
scheduler of this configuration does: plugins at each extension point, and all arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.codec import dotted, to_tree
from moorage.api.core.pod import DEFAULT_SCHEDULER
from moorage.api.errors import DecodeError
from moorage.api.field_path import Path, Place, root
from moorage.api.gates import Gates
from moorage.api.scheduler_config import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    duration_ns,
)
from moorage.api.scheduler_plugin_args import API_VERSION, ARGS, PluginArgs, read_args
from moorage.kit.go_duration import duration_text
from moorage.validation.errors import (
    OMITTED,
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    required,
)
from moorage.validation.field_rules import qualified_name, value_or
from moorage.validation.scheduler_plugin_args import default_args, validate_args
from moorage.validation.scheduler_plugins import POINTS, default_plugins, merge_plugins
from moorage.validation.strategy import Context, Strategy

PROFILES = root("profiles")
LEADER_ELECTION = root("leaderElection")
LEASES = "leases"
REMOVED_PLUGINS = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))


# --- defaults -------------------------------------------------------------------------------------


def default_scheduler_configuration(
    config: KubeSchedulerConfiguration, *, gates: Gates
) -> KubeSchedulerConfiguration:
    """Return the configuration with all defaults; may raise DecodeError."""
    profiles = config.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    profiling = value_or(config.enable_profiling, True)
    contention = config.enable_contention_profiling
    return replace(
        config,
        parallelism=value_or(config.parallelism, 16),
        leader_election=_default_election(config.leader_election),
        client_connection=_default_connection(config.client_connection),
        enable_profiling=profiling,
        enable_contention_profiling=value_or(contention, True) if profiling else contention,
        percentage_of_nodes_to_score=value_or(config.percentage_of_nodes_to_score, 0),
        pod_initial_backoff_seconds=value_or(config.pod_initial_backoff_seconds, 1),
        pod_max_backoff_seconds=value_or(config.pod_max_backoff_seconds, 10),
        profiles=tuple(
            _default_profile(profile, PROFILES.index(position), gates)
            for position, profile in enumerate(profiles)
        ),
    )


def _default_election(
    election: LeaderElectionConfiguration | None,
) -> LeaderElectionConfiguration:
    election = election or LeaderElectionConfiguration()
    return replace(
        election,
        leader_elect=value_or(election.leader_elect, True),
        lease_duration=_time(election.lease_duration, "15s"),
        renew_deadline=_time(election.renew_deadline, "10s"),
        retry_period=_time(election.retry_period, "2s"),
        resource_lock=election.resource_lock or LEASES,
        resource_name=election.resource_name or "kube-scheduler",
        resource_namespace=election.resource_namespace or "kube-system",
    )


def _time(text: str | None, default: str) -> str:
    """Return a duration as Go prints it; zero counts as nothing."""
    nanoseconds = 0 if text is None else duration_ns(text)
    return duration_text(nanoseconds) if nanoseconds else default


def _default_connection(
    connection: ClientConnectionConfiguration | None,
) -> ClientConnectionConfiguration:
    connection = connection or ClientConnectionConfiguration()
    return replace(
        connection,
        content_type=connection.content_type or "application/vnd.kubernetes.protobuf",
        qps=number_of(connection.qps) or 50,
        burst=connection.burst or 100,
    )


def number_of(value: Any) -> float:
    """Return a number of a file; may raise DecodeError."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DecodeError(f"clientConnection.qps: expected a number, not {value!r}"[:200])
    number = float(value or 0)
    return int(number) if number.is_integer() else number


def _default_profile(
    profile: KubeSchedulerProfile, path: Path, gates: Gates
) -> KubeSchedulerProfile:
    plugins = merge_plugins(default_plugins(gates), profile.plugins)
    configs = []
    for position, config in enumerate(profile.plugin_config):
        args = args_of(config, path.child("pluginConfig").index(position))
        if args is not None:
            config = replace(config, args=to_tree(default_args(args, gates)))
        configs.append(config)
    given = {config.name for config in configs}
    enabled = {each.name for name, _ in POINTS for each in getattr(plugins, name).enabled}
    for name in sorted(enabled & ARGS.keys() - given):
        args = default_args(ARGS[name](), gates)
        configs.append(PluginConfig(name=name, args=to_tree(args)))
    return replace(profile, plugins=plugins, plugin_config=tuple(configs))


def args_of(config: PluginConfig, path: Path) -> PluginArgs | None:
    """Return the arguments of a plugin that has some; may raise DecodeError with the place."""
    struct = ARGS.get(config.name)
    if struct is None:
        return None
    try:
        args, _ = read_args(config.name, config.args, struct)
        for text in (getattr(args, name, None) for name in ("filter_timeout", "binding_timeout")):
            if text is not None:
                duration_ns(text)
    except DecodeError as error:
        raise DecodeError(f"decoding .{path}: {error}") from None
    return args  # type: ignore[no-any-return]


# --- rules ----------------------------------------------------------------------------------------


def validate_scheduler_configuration(
    config: KubeSchedulerConfiguration, *, gates: Gates
) -> ErrorList:
    """Return the errors of a configuration with defaults."""
    found: ErrorList = []
    connection = config.client_connection or ClientConnectionConfiguration()
    if connection.burst < 0:
        place = root("clientConnection").child("burst")
        found.append(invalid(place, connection.burst, "must be non-negative"))
    found += _validate_election(config.leader_election or LeaderElectionConfiguration())
    if (config.parallelism or 0) <= 0:
        detail = "should be an integer value greater than zero"
        found.append(invalid(root("parallelism"), config.parallelism, detail))
    if not config.profiles:
        found.append(required(PROFILES))
    found += _validate_profiles(config.profiles, gates)
    found += _validate_percentage(
        config.percentage_of_nodes_to_score, root("percentageOfNodesToScore")
    )
    initial, most = config.pod_initial_backoff_seconds or 0, config.pod_max_backoff_seconds or 0
    if initial <= 0:
        path = root("podInitialBackoffSeconds")
        found.append(invalid(path, initial, "must be greater than 0"))
    if most < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        found.append(invalid(root("podMaxBackoffSeconds"), most, detail))
    return found + _validate_extenders(config.extenders)


def _validate_election(election: LeaderElectionConfiguration) -> ErrorList:
    if not election.leader_elect:
        return []
    found: ErrorList = []
    times = {
        "leaseDuration": duration_ns(election.lease_duration or "0"),
        "renewDeadline": duration_ns(election.renew_deadline or "0"),
        "retryPeriod": duration_ns(election.retry_period or "0"),
    }
    for name, nanoseconds in times.items():
        if nanoseconds <= 0:
            text = duration_text(nanoseconds)
            found.append(invalid(LEADER_ELECTION.child(name), text, "must be greater than zero"))
    if times["leaseDuration"] <= times["renewDeadline"]:
        text = duration_text(times["renewDeadline"])
        place = LEADER_ELECTION.child("leaseDuration")
        found.append(invalid(place, text, "must be greater than `RenewDeadline`"))
    if election.resource_lock != LEASES:
        place = LEADER_ELECTION.child("resourceLock")
        detail = f'resourceLock value must be "{LEASES}"'
        found.append(invalid(place, election.resource_lock, detail))
    return found


def _validate_profiles(profiles: tuple[KubeSchedulerProfile, ...], gates: Gates) -> ErrorList:
    found: ErrorList = []
    positions: dict[str | None, int] = {}
    for position, profile in enumerate(profiles):
        path = PROFILES.index(position)
        if not profile.scheduler_name:
            found.append(required(path.child("schedulerName")))
        found += _validate_percentage(
            profile.percentage_of_nodes_to_score, path.child("percentageOfNodesToScore")
        )
        found += _validate_plugins(profile, path.child("plugins"))
        found += _validate_plugin_configs(profile, path.child("pluginConfig"), gates)
        name = profile.scheduler_name or ""
        if name in positions:
            # Kubernetes prints the path of the first one here, as an empty struct.
            found.append(duplicate(path.child("schedulerName"), {}))
        positions[name] = position
    return found + _validate_queue_sort(profiles)


def _validate_plugins(profile: KubeSchedulerProfile, path: Path) -> ErrorList:
    found: ErrorList = []
    for name, json_name in POINTS if profile.plugins is not None else ():
        for number, plugin in enumerate(getattr(profile.plugins, name).enabled):
            if plugin.name in REMOVED_PLUGINS:
                place = path.child(json_name, "enabled").index(number)
                found.append(invalid(place, plugin.name, _removed()))
    return found


def _removed() -> str:
    return f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def _validate_plugin_configs(profile: KubeSchedulerProfile, path: Path, gates: Gates) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for position, config in enumerate(profile.plugin_config):
        place = path.index(position)
        if config.name in seen:
            found.append(duplicate(place, config.name))
        seen.add(config.name)
        if config.name in REMOVED_PLUGINS:
            found.append(invalid(place, config.name, _removed()))
        elif (args := args_of(config, place)) is not None:
            found += validate_args(config.name, args, place.child("args"), gates)
    return found


def _validate_queue_sort(profiles: tuple[KubeSchedulerProfile, ...]) -> ErrorList:
    found: ErrorList = []
    sets = [profile.plugins.queue_sort for profile in profiles if profile.plugins is not None]
    if sets and len(sets[0].enabled) > 1:
        place = PROFILES.index(0).child("plugins", "queueSort", "Enabled")
        detail = "only one queue sort plugin can be enabled"
        found.append(invalid(place, len(sets[0].enabled), detail))
    for position, each in enumerate(sets):
        if each != sets[0]:
            place = PROFILES.index(position).child("plugins", "queueSort")
            found.append(invalid(place, OMITTED, "must be the same for all profiles"))
    return found


def _validate_percentage(value: int | None, path: Path) -> ErrorList:
    if value is None or 0 <= value <= 100:
        return []
    return [invalid(path, value, "not in valid range [0-100]")]


def _validate_extenders(extenders: tuple[Any, ...]) -> ErrorList:
    """Return what Kubernetes refuses of extenders."""
    found: ErrorList = []
    binders = 0
    seen: set[str] = set()
    for position, extender in enumerate(extenders):
        place = root("extenders").index(position)
        if not isinstance(extender, Mapping):
            found.append(invalid(place, OMITTED, "expected a map"))
            continue
        weight = extender.get("weight") or 0
        if extender.get("prioritizeVerb") and not (isinstance(weight, int) and weight > 0):
            detail = "must have a positive weight applied to it"
            found.append(invalid(place.child("weight"), weight, detail))
        binders += bool(extender.get("bindVerb"))
        for number, name in _managed(extender):
            below = place.child("managedResources").index(number).child("name")
            faults = qualified_name(name, below)
            found += faults
            if not faults and not names.is_extended_resource(name):
                found.append(invalid(below, name, "is an invalid extended resource name"))
            if name in seen:
                found.append(invalid(below, name, "duplicate extender managed resource name"))
            seen.add(name)
    if binders > 1:
        text = f"found {binders} extenders implementing bind"
        found.append(invalid(root("extenders"), text, "only one extender can implement bind"))
    return found


def _managed(extender: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    resources = extender.get("managedResources")
    for number, each in enumerate(resources if isinstance(resources, list | tuple) else ()):
        yield number, str(each.get("name") or "") if isinstance(each, Mapping) else ""


# --- fields that nobody knows ---------------------------------------------------------------------


def unknown_arguments(config: KubeSchedulerConfiguration) -> list[str]:
    """Return what Kubernetes says of fields that the arguments of plugins do not have."""
    found = []
    for number, profile in enumerate(config.profiles):
        for position, each in enumerate(profile.plugin_config):
            struct = ARGS.get(each.name)
            if struct is None:
                continue
            path = PROFILES.index(number).child("pluginConfig").index(position)
            places: tuple[Place, ...] = ()
            try:
                _, places = read_args(each.name, each.args, struct)
            except DecodeError:
                continue  # the defaults report it
            start = f"decoding .{path}: decoding args for plugin {each.name}: "
            start += "strict decoding error: unknown field"
            found += [f'{start} "{dotted(place)}"' for place in places]
    return found


class SchedulerConfigurationStrategy(Strategy[KubeSchedulerConfiguration]):
    """The strategy of scheduler configurations, which are files and never stored."""

    def validate(self, new: KubeSchedulerConfiguration, context: Context) -> ErrorList:
        """Validate everything, with the defaults of the scheduler."""
        found = [forbidden(PROFILES, text) for text in unknown_arguments(new)]
        try:
            config = default_scheduler_configuration(new, gates=context.gates)
            return found + validate_scheduler_configuration(config, gates=context.gates)
        except DecodeError as error:  # in the arguments of a plugin
            return [*found, invalid(PROFILES, OMITTED, str(error))]
