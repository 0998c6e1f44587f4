"""MOVED."""

from tests.controllers.model import Model as Model  # noqa
from tests.controllers.model import RefusedError as RefusedError  # noqa

__all__ = ["Model", "RefusedError"]  # noqa
