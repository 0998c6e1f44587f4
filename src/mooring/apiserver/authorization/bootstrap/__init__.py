"""MOVED."""

from mooring.apiserver.auth.bootstrap_policy import bootstrap_objects as bootstrap_objects  # noqa

__all__ = ["bootstrap_objects"]  # noqa
