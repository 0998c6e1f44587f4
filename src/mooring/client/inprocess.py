"""MOVED."""

from mooring.client.in_process import InProcessTransport as InProcessTransport

__all__ = ["InProcessTransport"]
