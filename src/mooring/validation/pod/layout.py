"""MOVED."""

from mooring.validation.go_layout import internal_form as internal_form  # noqa
from mooring.validation.go_layout import internal_lines as internal_lines  # noqa

__all__ = ["internal_form", "internal_lines"]  # noqa
