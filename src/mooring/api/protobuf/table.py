"""MOVED."""

from mooring.api.schema import Field as Field  # noqa
from mooring.api.schema import api_type as declaration  # noqa
from mooring.api.schema import find_kind as kind_named  # noqa

__all__ = ["Field", "declaration", "kind_named"]  # noqa
