"""kubescheduler.config.k8s.io/v1: the configuration file of the scheduler.

Every field of Kubernetes 1.37 is declared; any other is an error. Durations are texts such as
`600s`, as in the file; `duration_ns` reads them. The arguments of plugins are in
`moorage.api.scheduler_plugin_args`.
"""

from __future__ import annotations

from moorage.api.errors import DecodeError
from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json
from moorage.api.scheduler_plugin_args import (
    API_VERSION,
    DYNAMIC_RESOURCES,
    DynamicResourcesArgs,
    read_args,
)
from moorage.api.structs import Closed, Int32, Int64, always
from moorage.kit.go_duration import DurationError, read_duration


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


def duration_ns(text: str) -> int:
    """Return the nanoseconds of a duration, or raise DecodeError with the text of Go."""
    try:
        return read_duration(text)
    except DurationError as error:
        raise DecodeError(str(error)) from None


# Without a plural: no server serves them.
KINDS: tuple[Kind, ...] = tuple(
    declare_kind(struct, "", namespaced=False)
    for struct in (KubeSchedulerConfiguration, DynamicResourcesArgs)
)
