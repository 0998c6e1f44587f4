"""MOVED."""

from mooring.insight.messages import Concern as Concern  # noqa
from mooring.insight.messages import full_name as full_name  # noqa
from mooring.insight.messages import listed as listed  # noqa
from mooring.insight.messages import titled as titled  # noqa

__all__ = ["Concern", "full_name", "listed", "titled"]  # noqa
