"""MOVED."""
from mooring.node.kubelet_server import Answering as Answering  # noqa
from mooring.node.kubelet_server import Files as Files  # noqa
from mooring.node.kubelet_server import serving as serving  # noqa
__all__ = ["Answering", "Files", "serving"]  # noqa
