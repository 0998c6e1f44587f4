"""MOVED."""

from mooring.apiserver.settings import Limits as Limits  # noqa

__all__ = ["Limits"]  # noqa
