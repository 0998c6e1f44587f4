"""MOVED."""

from mooring.validation.registry import Admission as Admission  # noqa
from mooring.validation.registry import CONFLICT as CONFLICT
from mooring.validation.registry import GENERATED_SUFFIX as GENERATED_SUFFIX
from mooring.validation.registry import MetadataOnly as MetadataOnly
from mooring.validation.registry import admit_create as admit_create
from mooring.validation.registry import admit_status as admit_status
from mooring.validation.registry import admit_update as admit_update
from mooring.validation.registry import read_hub as read_hub
from mooring.validation.registry import strategy_of as strategy_of
from mooring.validation.registry import written_path as written_path

__all__ = [
    "Admission",
    "CONFLICT",
    "GENERATED_SUFFIX",
    "MetadataOnly",
    "admit_create",
    "admit_status",
    "admit_update",
    "read_hub",
    "strategy_of",
    "written_path",
]
