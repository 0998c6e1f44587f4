"""The roles and bindings that a new cluster starts with: tables, and how they become objects."""

from mooring.apiserver.authorization.bootstrap.objects import bootstrap_objects, reconciled

__all__ = ["bootstrap_objects", "reconciled"]
