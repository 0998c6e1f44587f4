"""MOVED."""

from mooring.insight.snapshot.archive import Archive as Archive  # noqa
from mooring.insight.snapshot.archive import Manifest as Manifest  # noqa
from mooring.insight.snapshot.archive import UNPACKED_BYTES_MAX as UNPACKED_BYTES_MAX  # noqa
from mooring.insight.snapshot.archive import is_snapshot as is_snapshot  # noqa
from mooring.insight.snapshot.archive import read_archive as read_archive  # noqa
from mooring.insight.snapshot.archive import write_archive as write_archive  # noqa

__all__ = [
    "Archive",
    "Manifest",
    "UNPACKED_BYTES_MAX",
    "is_snapshot",
    "read_archive",
    "write_archive",
]  # noqa
