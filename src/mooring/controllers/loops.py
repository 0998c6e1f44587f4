"""MOVED."""

from mooring.controllers.controller_manager import ControllerManager as Loops  # noqa
from mooring.controllers.controller_manager import NOT_EVERYWHERE as NOT_EVERYWHERE  # noqa

__all__ = ["Loops", "NOT_EVERYWHERE"]  # noqa
