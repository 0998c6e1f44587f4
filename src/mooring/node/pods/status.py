"""MOVED."""

from mooring.node.pods.pod_status import NodeAddresses as Place  # noqa
from mooring.node.pods.pod_status import patch_of as patch_of  # noqa
from mooring.node.pods.pod_status import status_of as status_of  # noqa

__all__ = ["Place", "patch_of", "status_of"]  # noqa
