"""How the live scheduler is set: from the configuration file, with its defaults."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from mooring.api.core.pod import DEFAULT_SCHEDULER
from mooring.api.gates import Gates
from mooring.api.schedulerconfig import (
    KubeSchedulerConfiguration,
    duration_ns,
    dynamic_resources_args,
)
from mooring.scheduler.features import ALL_FEATURES, Features
from mooring.scheduler.live.queue import Backoff
from mooring.validation.schedulerconfig import default_scheduler_configuration


class ExplainIn(StrEnum):
    """Where Mooring's own explanation of a pod without a node is written."""

    CONDITION = "condition"  # behind Kubernetes' message, in the condition and in its event
    EVENT = "event"  # in an event of its own; Kubernetes' message stays as it is
    NONE = "none"  # nowhere


class Config(Struct, frozen=True):
    """What decides how pods are scheduled live."""

    names: tuple[str, ...] = (DEFAULT_SCHEDULER,)  # of the profiles; pods ask for one of them
    features: Features = ALL_FEATURES
    extensions: bool = True
    backoff: Backoff = Backoff()
    filter_timeout_s: float = 10.0  # 0: none
    binding_timeout_s: float = 600.0
    explain_in: ExplainIn = ExplainIn.CONDITION
    jobs_max: int = 512  # pods that are bound at once; no more are decided beyond that


def read_config(file: KubeSchedulerConfiguration, gates: Gates) -> Config:
    """Return what a configuration says, once it is checked; its first profile's times count."""
    file = default_scheduler_configuration(file, gates=gates)
    args = dynamic_resources_args(file.profiles[0])
    return Config(
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
