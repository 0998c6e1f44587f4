"""MOVED."""

from mooring.api.raw_json import holds_raw as holds_raw  # noqa
from mooring.api.raw_json import raws_of as raws_of  # noqa
from mooring.api.raw_json import to_raw_tree as to_raw_tree  # noqa

__all__ = ["holds_raw", "raws_of", "to_raw_tree"]  # noqa
