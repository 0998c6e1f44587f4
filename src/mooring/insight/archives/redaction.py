"""MOVED."""

from mooring.insight.snapshot.redaction import redacted as redacted  # noqa

__all__ = ["redacted"]  # noqa
