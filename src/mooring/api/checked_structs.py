"""MOVED."""

from mooring.api.structs import Checked as Checked  # noqa
from mooring.api.structs import shown as shown  # noqa
from mooring.api.structs import unchecked as unchecked  # noqa

__all__ = ["Checked", "shown", "unchecked"]  # noqa
