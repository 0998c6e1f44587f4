"""MOVED."""

from mooring.client.contract import list_all as list_all

__all__ = ["list_all"]
