"""The configuration of the live scheduler: from the configuration file, with its defaults."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from mooring.api.core.pod import DEFAULT_SCHEDULER
from mooring.api.gates import Gates
from mooring.api.scheduler_config import (
    KubeSchedulerConfiguration,
    duration_ns,
    dynamic_resources_args,
)
from mooring.scheduler.features import ALL_FEATURES, Features
from mooring.validation.scheduler_configuration import default_scheduler_configuration


class ExplainIn(StrEnum):
    """Where Mooring's own explanation of an unscheduled pod is written."""

    CONDITION = "condition"  # after Kubernetes' message, in the condition and in its event
    EVENT = "event"  # in an event of its own; Kubernetes' message is left unchanged
    NONE = "none"  # nowhere


class Backoff(Struct, frozen=True):
    """How long an entry waits after a try: longer each time."""

    first_s: float = 1.0
    most_s: float = 10.0
    parked_most_s: float = 300.0

    def after(self, tries: int) -> float:
        """Return how long to wait after this number of tries."""
        return float(min(self.first_s * 2 ** min(max(tries - 1, 0), 30), self.most_s))


class SchedulerConfig(Struct, frozen=True):
    """How pods are scheduled live."""

    names: tuple[str, ...] = (DEFAULT_SCHEDULER,)  # of the profiles; a pod names one of them
    features: Features = ALL_FEATURES
    extensions: bool = True
    backoff: Backoff = Backoff()
    filter_timeout_s: float = 10.0  # 0: none
    binding_timeout_s: float = 600.0
    explain_in: ExplainIn = ExplainIn.CONDITION
    jobs_max: int = 512  # binding cycles at once; beyond that no pod is scheduled


def read_config(file: KubeSchedulerConfiguration, gates: Gates) -> SchedulerConfig:
    """Return the configuration of a checked file; the timeouts of its first profile count."""
    file = default_scheduler_configuration(file, gates=gates)
    args = dynamic_resources_args(file.profiles[0])
    return SchedulerConfig(
        names=tuple(profile.scheduler_name or DEFAULT_SCHEDULER for profile in file.profiles),
        features=Features.of(gates),
        backoff=Backoff(
            float(file.pod_initial_backoff_seconds or 1), float(file.pod_max_backoff_seconds or 10)
        ),
        filter_timeout_s=_seconds(args.filter_timeout if args else None, 0.0),
        binding_timeout_s=_seconds(args.binding_timeout if args else None, 600.0),
    )


def _seconds(text: str | None, default: float) -> float:
    return default if text is None else duration_ns(text) / 1e9


class Moment(NamedTuple):
    """A point in time, on both clocks."""

    elapsed_s: float  # on a clock that only goes forward
    wall: datetime
