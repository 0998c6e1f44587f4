"""The configuration of the live scheduler, with its defaults, and the kinds that it watches."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from moorage.api.core.namespace import Namespace
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.scheduler_config import KubeSchedulerConfiguration
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.scheduler.features import ALL_FEATURES, Features
from moorage.scheduler.live.backoff import Backoff
from moorage.scheduler.plugins.registry import DEFAULT_PROFILE, Profile
from moorage.scheduler.profiles import read_profiles
from moorage.scheduler.topology_spread import SELECTOR_OWNERS
from moorage.scheduler.volume_binding import VOLUME_KINDS
from moorage.validation.scheduler_configuration import default_scheduler_configuration

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
    PodDisruptionBudget,
    *VOLUME_KINDS,
    Pod,
)


class ExplainIn(StrEnum):
    """Where Moorage's own explanation of an unscheduled pod is written."""

    CONDITION = "condition"  # after Kubernetes' message, in the condition and in its event
    EVENT = "event"  # in an event of its own; Kubernetes' message is left unchanged
    NONE = "none"  # nowhere


class SchedulerConfig(Struct, frozen=True):
    """How pods are scheduled live."""

    profiles: tuple[Profile, ...] = (DEFAULT_PROFILE,)  # a pod names one of them
    features: Features = ALL_FEATURES
    extensions: bool = True
    backoff: Backoff = Backoff()
    explain_in: ExplainIn = ExplainIn.CONDITION
    reports_composites: bool = False  # an extension: composite groups have the condition of groups
    joins_claim_writes: bool = False  # a claim's finalizer goes with its status, in one write
    jobs_max: int = 512  # binding cycles at once; beyond that no pod is scheduled

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the profiles."""
        return tuple(profile.name for profile in self.profiles)


def read_config(file: KubeSchedulerConfiguration, gates: Gates) -> SchedulerConfig:
    """Return the configuration of a checked file."""
    file = default_scheduler_configuration(file, gates=gates)
    return SchedulerConfig(
        profiles=read_profiles(file),
        features=Features.of(gates),
        backoff=Backoff(
            float(file.pod_initial_backoff_seconds or 1), float(file.pod_max_backoff_seconds or 10)
        ),
    )


class Moment(Struct, frozen=True):
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
