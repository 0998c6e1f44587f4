"""MOVED."""

from mooring.driver.checkpoint import FileSystem as Files  # noqa

__all__ = ["Files"]  # noqa
