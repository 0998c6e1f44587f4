"""MOVED."""

from mooring.insight.snapshot.pseudonyms import anonymised as anonymised  # noqa

__all__ = ["anonymised"]  # noqa
