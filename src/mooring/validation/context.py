"""MOVED."""

from mooring.validation.strategy import AllowEverything as AllowEverything  # noqa
from mooring.validation.strategy import Context as Context  # noqa
from mooring.validation.strategy import DriverRefusal as DriverRefusal  # noqa
from mooring.validation.strategy import StatusAuthorizer as StatusAuthorizer  # noqa

__all__ = ["AllowEverything", "Context", "DriverRefusal", "StatusAuthorizer"]  # noqa
