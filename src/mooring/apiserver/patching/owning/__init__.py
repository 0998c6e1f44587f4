"""Who owns which field: managedFields, and what apply and update do to it."""

from __future__ import annotations

from mooring.apiserver.patching.owning.fieldmanager import FieldManager

__all__ = ["FieldManager"]
