"""MOVED."""

from mooring.cel.device_values import Domains as Domains  # noqa
from mooring.cel.device_values import attribute_value as attribute_value  # noqa
from mooring.cel.device_values import device_variables as device_variables  # noqa

__all__ = ["Domains", "attribute_value", "device_variables"]  # noqa
