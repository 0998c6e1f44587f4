"""MOVED."""

from mooring.kit.paths_beneath import UnsafePathError as UnsafePathError
from mooring.kit.paths_beneath import check_name as check_name
from mooring.kit.paths_beneath import folder_beneath as folder_beneath
from mooring.kit.paths_beneath import open_beneath as open_beneath
from mooring.kit.paths_beneath import parts_of as parts_of
from mooring.kit.paths_beneath import remove_beneath as remove_beneath
from mooring.kit.paths_beneath import write_beneath as write_beneath

__all__ = [
    "UnsafePathError",
    "check_name",
    "folder_beneath",
    "open_beneath",
    "parts_of",
    "remove_beneath",
    "write_beneath",
]
