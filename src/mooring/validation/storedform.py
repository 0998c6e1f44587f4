"""MOVED."""

from mooring.validation.equality import stored_form as stored_form

__all__ = ["stored_form"]
