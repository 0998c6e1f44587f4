"""MOVED."""

from mooring.apiserver.auth.credentials import NodeFolder as NodeFolder  # noqa
from mooring.apiserver.auth.credentials import write_node_folder as write_node_folder  # noqa

__all__ = ["NodeFolder", "write_node_folder"]  # noqa
