"""MOVED."""

from mooring.node.kubelet_server import RequestHandler as Answering  # noqa
from mooring.node.kubelet_server import TlsFiles as Files  # noqa
from mooring.node.kubelet_server import serving as serving  # noqa

__all__ = ["Answering", "Files", "serving"]  # noqa
