"""MOVED."""

from mooring.validation.scheduler_configuration import (
    default_scheduler_configuration as default_scheduler_configuration,
)
from mooring.validation.scheduler_configuration import (
    validate_scheduler_configuration as validate_scheduler_configuration,
)

__all__ = ["default_scheduler_configuration", "validate_scheduler_configuration"]
