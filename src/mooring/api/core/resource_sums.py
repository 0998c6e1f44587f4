"""MOVED."""

from mooring.api.core.pod import ContainerResources as Source  # noqa
from mooring.api.core.pod import add_resources as add  # noqa
from mooring.api.core.pod import resources_at_once as at_once  # noqa
from mooring.api.core.pod import raise_resources_to as raise_to  # noqa

__all__ = ["Source", "add", "at_once", "raise_to"]  # noqa
