"""Defaults and rules of KubeSchedulerConfiguration.

Unlike in API objects, a field of a disabled feature is an error here.
"""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.codec import to_tree
from mooring.api.core.pod import DEFAULT_SCHEDULER
from mooring.api.errors import DecodeError
from mooring.api.field_path import Path, root
from mooring.api.gates import Gate, Gates
from mooring.api.scheduler_config import (
    DYNAMIC_RESOURCES,
    DynamicResourcesArgs,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    duration_ns,
    duration_text,
    dynamic_resources_args,
)
from mooring.validation.errors import OMITTED, ErrorList, duplicate, forbidden, invalid, required
from mooring.validation.field_rules import value_or
from mooring.validation.strategy import Context, Strategy

FILTER_TIMEOUT = "10s"
BINDING_TIMEOUT = "10m0s"
BINDING_TIMEOUT_MIN_NS = 1_000_000_000

PROFILES = root("profiles")


def default_scheduler_configuration(
    config: KubeSchedulerConfiguration, *, gates: Gates
) -> KubeSchedulerConfiguration:
    """Return the configuration with the defaults that affect scheduling."""
    profiles = config.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    return replace(
        config,
        parallelism=value_or(config.parallelism, 16),
        percentage_of_nodes_to_score=value_or(config.percentage_of_nodes_to_score, 0),
        pod_initial_backoff_seconds=value_or(config.pod_initial_backoff_seconds, 1),
        pod_max_backoff_seconds=value_or(config.pod_max_backoff_seconds, 10),
        profiles=tuple(_default_profile(profile, gates) for profile in profiles),
    )


def default_dynamic_resources_args(
    args: DynamicResourcesArgs, *, gates: Gates
) -> DynamicResourcesArgs:
    """Return the arguments with the timeouts of enabled features set."""
    if args.filter_timeout is None and gates.enabled(Gate.DRA_SCHEDULER_FILTER_TIMEOUT):
        args = replace(args, filter_timeout=FILTER_TIMEOUT)
    if args.binding_timeout is None and _waits_for_binding(gates):
        args = replace(args, binding_timeout=BINDING_TIMEOUT)
    return args


def validate_scheduler_configuration(
    config: KubeSchedulerConfiguration, *, gates: Gates
) -> ErrorList:
    """Return the errors of a configuration with defaults."""
    found: ErrorList = []
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
    return found


def validate_dynamic_resources_args(
    args: DynamicResourcesArgs, path: Path, *, gates: Gates
) -> ErrorList:
    """Return the errors of DynamicResourcesArgs."""
    found: ErrorList = []
    if args.filter_timeout is not None:
        filter_path, nanoseconds = path.child("filterTimeout"), duration_ns(args.filter_timeout)
        if not gates.enabled(Gate.DRA_SCHEDULER_FILTER_TIMEOUT):
            detail = "DRASchedulingFilterTimeout feature gate is disabled"
            found.append(forbidden(filter_path, detail))
        elif nanoseconds < 0:
            text = duration_text(nanoseconds)
            found.append(invalid(filter_path, text, "must be zero or positive"))
    if args.binding_timeout is not None:
        binding_path, nanoseconds = path.child("bindingTimeout"), duration_ns(args.binding_timeout)
        if not _waits_for_binding(gates):
            detail = (
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
                "feature gate is disabled"
            )
            found.append(forbidden(binding_path, detail))
        elif nanoseconds < BINDING_TIMEOUT_MIN_NS:
            text = duration_text(nanoseconds)
            found.append(invalid(binding_path, text, "must be at least 1 second"))
    return found


def _waits_for_binding(gates: Gates) -> bool:
    return gates.enabled(Gate.DRA_DEVICE_BINDING_CONDITIONS) and gates.enabled(
        Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS
    )


def _default_profile(profile: KubeSchedulerProfile, gates: Gates) -> KubeSchedulerProfile:
    given = dynamic_resources_args(profile)
    args = default_dynamic_resources_args(given or DynamicResourcesArgs(), gates=gates)
    config = PluginConfig(name=DYNAMIC_RESOURCES, args=to_tree(args))
    others = profile.plugin_config
    if given is None:
        return replace(profile, plugin_config=(*others, config))
    position = [other.name for other in others].index(DYNAMIC_RESOURCES)
    configs = (*others[:position], config, *others[position + 1 :])
    return replace(profile, plugin_config=configs)


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
        found += _validate_plugin_configs(profile, path.child("pluginConfig"), gates)
        name = profile.scheduler_name or ""
        if name in positions:
            # Kubernetes prints the path of the first one here, as an empty struct.
            found.append(duplicate(path.child("schedulerName"), {}))
        positions[name] = position
    return found


def _validate_plugin_configs(profile: KubeSchedulerProfile, path: Path, gates: Gates) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for position, config in enumerate(profile.plugin_config):
        place = path.index(position)
        if config.name in seen:
            found.append(duplicate(place, config.name))
        seen.add(config.name)
        if config.name == DYNAMIC_RESOURCES:
            args = dynamic_resources_args(replace(profile, plugin_config=(config,)))
            assert args is not None
            found += validate_dynamic_resources_args(args, place.child("args"), gates=gates)
    return found


def _validate_percentage(value: int | None, path: Path) -> ErrorList:
    if value is None or 0 <= value <= 100:
        return []
    return [invalid(path, value, "not in valid range [0-100]")]


class SchedulerConfigurationStrategy(Strategy[KubeSchedulerConfiguration]):
    """The strategy of scheduler configurations, which are files and never stored."""

    def validate(self, new: KubeSchedulerConfiguration, context: Context) -> ErrorList:
        """Validate everything, with the defaults of the scheduler."""
        try:
            config = default_scheduler_configuration(new, gates=context.gates)
            return validate_scheduler_configuration(config, gates=context.gates)
        except DecodeError as error:  # in the arguments of a plugin
            return [invalid(PROFILES, OMITTED, str(error))]
