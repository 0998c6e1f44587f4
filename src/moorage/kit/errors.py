"""The base of all errors that Moorage raises on purpose.

MoorageError
├── api.errors.ApiError            input that cannot be read: documents, objects, quantities, gates
├── client.errors.ClientError      a request that was rejected or failed
├── driver.errors.DriverError      something about a driver
├── hardware.errors.HardwareError  hardware that cannot be described; an unknown profile
├── insight.errors.InsightError    a question that has no answer: unknown names, too many pods
└── sources.errors.SourceError     files that cannot be read, objects that are refused
"""

from __future__ import annotations


class MoorageError(Exception):
    """What Moorage cannot do, and why; the message has place, fact and, if there is one, remedy."""


class MoorageWarning(UserWarning):
    """Something about objects that one should know before believing an answer."""
