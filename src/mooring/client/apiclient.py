"""MOVED."""

from mooring.client.api_client import ApiClient as ApiClient

__all__ = ["ApiClient"]
