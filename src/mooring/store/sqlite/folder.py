"""MOVED."""

from mooring.store.sqlite.database import Folder as Folder

__all__ = ["Folder"]
