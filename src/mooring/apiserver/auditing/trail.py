"""MOVED."""

from mooring.apiserver.audit.auditor import log_families as log_families  # noqa

__all__ = ["log_families"]  # noqa
