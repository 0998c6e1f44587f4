"""MOVED."""

from mooring.driver.serving import served as served  # noqa

__all__ = ["served"]  # noqa
