"""MOVED."""

from mooring.validation.field_rules import duplicates as duplicates
from mooring.validation.field_rules import is_good_label as is_good_label
from mooring.validation.field_rules import is_good_qualified_name as is_good_qualified_name

__all__ = ["duplicates", "is_good_label", "is_good_qualified_name"]
