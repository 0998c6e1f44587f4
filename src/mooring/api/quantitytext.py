"""MOVED."""

from mooring.api.quantity_text import Format as Format  # noqa

__all__ = ["Format"]  # noqa
