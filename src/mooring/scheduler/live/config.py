"""The configuration of the live scheduler, with its defaults, and the kinds that it watches."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from mooring.api.core.namespace import Namespace
from mooring.api.core.node import Node
from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod
from mooring.api.gates import Gates
from mooring.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from mooring.api.scheduler_config import (
    KubeSchedulerConfiguration,
    duration_ns,
    dynamic_resources_args,
)
from mooring.api.scheduling import CompositePodGroup, PodGroup
from mooring.scheduler.features import ALL_FEATURES, Features
from mooring.scheduler.live.backoff import Backoff
from mooring.scheduler.topology_spread import SELECTOR_OWNERS
from mooring.validation.scheduler_configuration import default_scheduler_configuration

KINDS: tuple[type[Any], ...] = (
    Namespace,
    Node,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
    CompositePodGroup,
    PodGroup,
    ResourceClaim,
    *SELECTOR_OWNERS,
    Pod,
)


class ExplainIn(StrEnum):
    """Where Mooring's own explanation of an unscheduled pod is written."""

    CONDITION = "condition"  # after Kubernetes' message, in the condition and in its event
    EVENT = "event"  # in an event of its own; Kubernetes' message is left unchanged
    NONE = "none"  # nowhere


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


def kinds_of(features: Features) -> tuple[type[Any], ...]:
    """Return the kinds that the features need.

    A scheduler may not read the others: its role has them only where the feature is on.
    """
    needed: dict[type[Any], bool] = {
        DeviceTaintRule: features.taint_rules,
        PodGroup: features.pod_groups,
        CompositePodGroup: features.pod_groups and features.composite_groups,
    }
    return tuple(kind for kind in KINDS if needed.get(kind, True))
