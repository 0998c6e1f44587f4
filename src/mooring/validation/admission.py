"""MOVED."""
from mooring.validation.registry import RegistryResult as Admission  # noqa
from mooring.validation.registry import CONFLICT as CONFLICT  # noqa
from mooring.validation.registry import GENERATED_SUFFIX as GENERATED_SUFFIX  # noqa
from mooring.validation.registry import MetadataStrategy as MetadataOnly  # noqa
from mooring.validation.registry import before_create as admit_create  # noqa
from mooring.validation.registry import before_status_update as admit_status  # noqa
from mooring.validation.registry import before_update as admit_update  # noqa
from mooring.validation.registry import defaulted_hub as read_hub  # noqa
from mooring.validation.registry import strategy_for as strategy_of  # noqa
from mooring.validation.registry import versioned_path as written_path  # noqa
__all__ = ["Admission", "CONFLICT", "GENERATED_SUFFIX", "MetadataOnly", "admit_create", "admit_status", "admit_update", "read_hub", "strategy_of", "written_path"]  # noqa
