"""MOVED."""

from tests.controllers.settling import Settling as Settling  # noqa

__all__ = ["Settling"]  # noqa
