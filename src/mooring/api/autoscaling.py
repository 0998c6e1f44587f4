"""MOVED."""

from mooring.api.apps import SCALE as SCALE  # noqa
from mooring.api.apps import Scale as Scale  # noqa
from mooring.api.apps import ScaleSpec as ScaleSpec  # noqa
from mooring.api.apps import ScaleStatus as ScaleStatus  # noqa

__all__ = ["SCALE", "Scale", "ScaleSpec", "ScaleStatus"]  # noqa
