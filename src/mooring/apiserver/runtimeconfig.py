"""MOVED."""

from mooring.apiserver.resources import RuntimeConfig as RuntimeConfig  # noqa
from mooring.apiserver.errors import RuntimeConfigError as RuntimeConfigError  # noqa
from mooring.apiserver.resources import read_runtime_config as read_runtime_config  # noqa

__all__ = ["RuntimeConfig", "RuntimeConfigError", "read_runtime_config"]  # noqa
