"""MOVED."""

from mooring.apiserver.resources import Subresource as Part  # noqa
from mooring.apiserver.resources import REVIEWS as REVIEWS  # noqa
from mooring.apiserver.resources import Review as Review  # noqa
from mooring.apiserver.resources import Resource as Served  # noqa
from mooring.apiserver.resources import subresource_of as part_of  # noqa
from mooring.apiserver.resources import verbs_of as verbs_of  # noqa

__all__ = ["Part", "REVIEWS", "Review", "Served", "part_of", "verbs_of"]  # noqa
