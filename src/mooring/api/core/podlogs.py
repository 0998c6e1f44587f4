"""MOVED."""

from mooring.api.core.pod_log_options import ALL_STREAMS as ALL_STREAMS  # noqa
from mooring.api.core.pod_log_options import PodLogOptions as PodLogOptions  # noqa
from mooring.api.core.pod_log_options import read_log_options as read_log_options  # noqa

__all__ = ["ALL_STREAMS", "PodLogOptions", "read_log_options"]  # noqa
