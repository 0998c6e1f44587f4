"""MOVED."""
from mooring.insight.lint.subjects import LintObject as Object  # noqa
from mooring.insight.lint.subjects import read_object as read_object  # noqa
from mooring.insight.lint.subjects import read_slice as read_slice  # noqa
from mooring.insight.lint.subjects import resource_kind as resource_kind  # noqa
__all__ = ["Object", "read_object", "read_slice", "resource_kind"]  # noqa
