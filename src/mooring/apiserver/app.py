"""MOVED."""

from mooring.apiserver.http.app import Application as Application  # noqa
from mooring.apiserver.http.app import PEER as PEER  # noqa

__all__ = ["Application", "PEER"]  # noqa
