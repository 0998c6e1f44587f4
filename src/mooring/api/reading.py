"""MOVED."""

from mooring.api.object_reader import ReadObject as Reading  # noqa
from mooring.api.object_reader import Remark as Remark  # noqa
from mooring.api.object_reader import UNKNOWN_FIELDS_MAX as UNKNOWN_FIELDS_MAX  # noqa
from mooring.api.object_reader import kind_of as kind_of  # noqa
from mooring.api.object_reader import read_document as read_document  # noqa
from mooring.api.object_reader import read_json as read_json  # noqa
from mooring.api.object_reader import read_tree as read_tree  # noqa
from mooring.api.object_reader import unknown_field as unknown_field  # noqa

__all__ = [
    "Reading",
    "Remark",
    "UNKNOWN_FIELDS_MAX",
    "kind_of",
    "read_document",
    "read_json",
    "read_tree",
    "unknown_field",
]  # noqa
