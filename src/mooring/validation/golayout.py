"""MOVED."""

from mooring.api.raw_json import go_json as go_json  # noqa

__all__ = ["go_json"]  # noqa
