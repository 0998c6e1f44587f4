"""MOVED."""

from mooring.apiserver.verbs.selectors import required_fields as wanted_fields  # noqa

__all__ = ["wanted_fields"]  # noqa
