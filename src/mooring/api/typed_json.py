"""MOVED."""

from mooring.api.go_types import ITEMS_MAX as ITEMS_MAX  # noqa
from mooring.api.go_types import go_words as go_words  # noqa
from mooring.api.go_types import message_named as message_named  # noqa
from mooring.api.object_reader import read_parts as read_parts  # noqa
from mooring.api.object_reader import reports_unknown as reports_unknown  # noqa

__all__ = ["ITEMS_MAX", "go_words", "message_named", "read_parts", "reports_unknown"]  # noqa
