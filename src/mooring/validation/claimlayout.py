"""MOVED."""

from mooring.validation.go_layout import internal_template as internal_template  # noqa

__all__ = ["internal_template"]  # noqa
