"""MOVED."""

from mooring.hardware.sysfs_tree import FolderEntries as FolderStore
from mooring.hardware.sysfs_tree import folder_tree as folder_tree
from mooring.hardware.sysfs_tree import write_entries as write_entries

__all__ = ["FolderStore", "folder_tree", "write_entries"]
