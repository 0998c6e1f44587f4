"""MOVED."""

from mooring.api.device_metadata import API_VERSION as API_VERSION  # noqa
from mooring.api.device_metadata import ATTRIBUTES_MAX as ATTRIBUTES_MAX  # noqa
from mooring.api.device_metadata import DeviceMetadata as DeviceMetadata  # noqa
from mooring.api.device_metadata import DeviceMetadataDevice as DeviceMetadataDevice  # noqa
from mooring.api.device_metadata import DeviceMetadataRequest as DeviceMetadataRequest  # noqa
from mooring.api.device_metadata import V1ALPHA1 as V1ALPHA1  # noqa

__all__ = [
    "API_VERSION",
    "ATTRIBUTES_MAX",
    "DeviceMetadata",
    "DeviceMetadataDevice",
    "DeviceMetadataRequest",
    "V1ALPHA1",
]  # noqa
