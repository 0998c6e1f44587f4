"""MOVED."""

from mooring.controllers.pod_control import COMPLETION_INDEX as COMPLETION_INDEX  # noqa
from mooring.controllers.pod_control import TEMPLATE_HASH as TEMPLATE_HASH  # noqa
from mooring.controllers.pod_control import PodToCreate as Want  # noqa
from mooring.controllers.pod_control import metadata_of as metadata_of  # noqa

__all__ = ["COMPLETION_INDEX", "TEMPLATE_HASH", "Want", "metadata_of"]  # noqa
