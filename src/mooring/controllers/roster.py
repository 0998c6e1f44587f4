"""MOVED."""

from mooring.controllers.controller_manager import workload_controllers as workload_controllers  # noqa

__all__ = ["workload_controllers"]  # noqa
