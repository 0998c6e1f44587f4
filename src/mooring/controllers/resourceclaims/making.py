"""MOVED."""

from mooring.controllers.resource_claim_entries import complaint as complaint  # noqa

__all__ = ["complaint"]  # noqa
