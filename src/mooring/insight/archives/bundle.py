"""MOVED."""

from mooring.insight.snapshot.bundle import BYTES_MAX as BYTES_MAX  # noqa
from mooring.insight.snapshot.bundle import ENTRIES_MAX as ENTRIES_MAX  # noqa
from mooring.insight.snapshot.bundle import FILES_MAX as FILES_MAX  # noqa
from mooring.insight.snapshot.bundle import GZIP_MAGIC as GZIP_MAGIC  # noqa
from mooring.insight.snapshot.bundle import STREAM_BYTES_MAX as STREAM_BYTES_MAX  # noqa
from mooring.insight.snapshot.bundle import is_bundle as is_bundle  # noqa
from mooring.insight.snapshot.bundle import read_bundle as read_bundle  # noqa

__all__ = [
    "BYTES_MAX",
    "ENTRIES_MAX",
    "FILES_MAX",
    "GZIP_MAGIC",
    "STREAM_BYTES_MAX",
    "is_bundle",
    "read_bundle",
]  # noqa
