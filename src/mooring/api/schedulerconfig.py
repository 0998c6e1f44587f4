"""MOVED."""

from mooring.api.scheduler_config import DYNAMIC_RESOURCES as DYNAMIC_RESOURCES  # noqa
from mooring.api.scheduler_config import DynamicResourcesArgs as DynamicResourcesArgs  # noqa
from mooring.api.scheduler_config import KubeSchedulerConfiguration as KubeSchedulerConfiguration  # noqa
from mooring.api.scheduler_config import KubeSchedulerProfile as KubeSchedulerProfile  # noqa
from mooring.api.scheduler_config import PluginConfig as PluginConfig  # noqa
from mooring.api.scheduler_config import duration_ns as duration_ns  # noqa
from mooring.api.scheduler_config import duration_text as duration_text  # noqa
from mooring.api.scheduler_config import dynamic_resources_args as dynamic_resources_args  # noqa

__all__ = [
    "DYNAMIC_RESOURCES",
    "DynamicResourcesArgs",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "PluginConfig",
    "duration_ns",
    "duration_text",
    "dynamic_resources_args",
]  # noqa
