"""MOVED."""

from mooring.validation.field_rules import duplicates as duplicates  # noqa
from mooring.validation.field_rules import is_good_label as is_good_label  # noqa
from mooring.validation.field_rules import is_good_qualified_name as is_good_qualified_name  # noqa

__all__ = ["duplicates", "is_good_label", "is_good_qualified_name"]  # noqa
