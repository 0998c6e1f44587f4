"""MOVED."""

from mooring.client.namespace_deleter import discover as discover
from mooring.client.namespace_deleter import empty_namespace as empty_namespace

__all__ = ["discover", "empty_namespace"]
