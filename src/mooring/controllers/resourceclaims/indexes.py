"""MOVED."""

from mooring.controllers.resource_claim_entries import prepare as prepare  # noqa

__all__ = ["prepare"]  # noqa
