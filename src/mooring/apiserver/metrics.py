"""MOVED."""

from mooring.apiserver.http.metrics import Metrics as Metrics  # noqa

__all__ = ["Metrics"]  # noqa
