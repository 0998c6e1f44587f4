"""MOVED."""

from mooring.cel.lang.costs import UNBOUNDED as UNBOUNDED  # noqa
from mooring.cel.lang.macros import Macro as Macro  # noqa
from mooring.cel.lang.environment import Library as Library  # noqa
from mooring.cel.lang.environment import Overload as Overload  # noqa

__all__ = ["UNBOUNDED", "Macro", "Library", "Overload"]  # noqa
