"""MOVED."""

from mooring.hardware.sysfs_tree import Link as Link
from mooring.hardware.sysfs_tree import MemoryStore as MemoryStore
from mooring.hardware.sysfs_tree import Tree as Tree

__all__ = ["Link", "MemoryStore", "Tree"]
