"""MOVED."""

from mooring.validation.strategy import AllowEverything as AllowEverything
from mooring.validation.strategy import Context as Context
from mooring.validation.strategy import DriverRefusal as DriverRefusal
from mooring.validation.strategy import StatusAuthorizer as StatusAuthorizer

__all__ = ["AllowEverything", "Context", "DriverRefusal", "StatusAuthorizer"]
