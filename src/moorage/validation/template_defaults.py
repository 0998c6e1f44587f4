"""Defaults of kinds with a pod template, and of the template itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api.apps import DaemonSet, Deployment, StatefulSet, UpdateStrategy
from moorage.api.core.pod import PodTemplateSpec
from moorage.validation.field_rules import value_or
from moorage.validation.pod.defaults import default_pod_spec, filled_each
from moorage.validation.pod_template import ROLLING

HISTORY = 10  # old revisions to keep
PROGRESS_S = 600  # after which a rollout counts as stuck

_QUARTER: Mapping[str, Any] = {"maxUnavailable": "25%", "maxSurge": "25%"}
_ONE_BY_ONE: Mapping[str, Any] = {"maxUnavailable": 1, "maxSurge": 0}
_NONE_AT_ONCE: Mapping[str, Any] = {"maxUnavailable": 0, "maxSurge": 0}
_FROM_THE_TOP: Mapping[str, Any] = {"partition": 0, "maxUnavailable": 1}
_RETAIN: Mapping[str, Any] = {"whenDeleted": "Retain", "whenScaled": "Retain"}


def default_deployment(value: Deployment) -> Deployment:
    """Return a Deployment with every default."""
    spec = value.spec
    changed = replace(
        spec,
        replicas=value_or(spec.replicas, 1),
        template=default_template(spec.template),
        strategy=_default_update_strategy(spec.strategy, _QUARTER),
        revision_history_limit=value_or(spec.revision_history_limit, HISTORY),
        progress_deadline_seconds=value_or(spec.progress_deadline_seconds, PROGRESS_S),
    )
    return replace(value, spec=changed)


def default_daemon_set(value: DaemonSet) -> DaemonSet:
    """Return a DaemonSet with every default."""
    spec = value.spec
    strategy = _default_update_strategy(spec.update_strategy, _ONE_BY_ONE)
    if isinstance(strategy.rolling_update, dict):  # Go writes these two even if it does not obey.
        strategy = replace(strategy, rolling_update={**_NONE_AT_ONCE, **strategy.rolling_update})
    changed = replace(
        spec,
        template=default_template(spec.template),
        update_strategy=strategy,
        revision_history_limit=value_or(spec.revision_history_limit, HISTORY),
    )
    return replace(value, spec=changed)


def default_stateful_set(value: StatefulSet) -> StatefulSet:
    """Return a StatefulSet with every default."""
    spec = value.spec
    strategy = spec.update_strategy
    if not strategy.type or strategy.rolling_update is not None:
        strategy = _default_update_strategy(strategy, _FROM_THE_TOP)
    changed = replace(
        spec,
        replicas=value_or(spec.replicas, 1),
        template=default_template(spec.template),
        volume_claim_templates=filled_each(
            spec.volume_claim_templates, "core/v1.PersistentVolumeClaim"
        ),
        update_strategy=strategy,
        pod_management_policy=spec.pod_management_policy or "OrderedReady",
        revision_history_limit=value_or(spec.revision_history_limit, HISTORY),
        persistent_volume_claim_retention_policy=_filled_map(
            spec.persistent_volume_claim_retention_policy, _RETAIN
        ),
    )
    return replace(value, spec=changed)


def default_template(template: PodTemplateSpec) -> PodTemplateSpec:
    """Return a pod template with every default."""
    created = template.metadata.creation_timestamp
    if created is not None and created.is_zero:
        template = replace(template, metadata=replace(template.metadata, creation_timestamp=None))
    return replace(template, spec=default_pod_spec(template.spec))


def _default_update_strategy(given: UpdateStrategy, rolling: Mapping[str, Any]) -> UpdateStrategy:
    kind = given.type or ROLLING
    if kind != ROLLING:
        return given
    return replace(given, type=kind, rolling_update=_filled_map(given.rolling_update, rolling))


def _filled_map(given: Any, defaults: Mapping[str, Any]) -> Any:
    if given is not None and not isinstance(given, dict):
        return given  # It is rejected or kept unchanged.
    return {**defaults, **(given or {})}
