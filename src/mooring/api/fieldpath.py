"""MOVED."""

from mooring.api.field_path import MapKey as Key  # noqa
from mooring.api.field_path import Path as Path  # noqa
from mooring.api.field_path import Segment as Segment  # noqa
from mooring.api.field_path import path_of as path_of  # noqa
from mooring.api.field_path import render as render  # noqa
from mooring.api.field_path import root as root  # noqa

__all__ = ["Key", "Path", "Segment", "path_of", "render", "root"]  # noqa
