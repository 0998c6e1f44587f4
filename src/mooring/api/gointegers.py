"""MOVED."""

from mooring.api.go_integers import parse_int64 as parse_int64  # noqa

__all__ = ["parse_int64"]  # noqa
