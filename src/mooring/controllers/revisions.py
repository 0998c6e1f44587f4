"""Which replica set has the template of a deployment, and how revisions are counted."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.api.apps import Deployment, ReplicaSet, ReplicaSetSpec
from mooring.api.core import PodTemplateSpec
from mooring.api.gointegers import parse_int64
from mooring.api.meta import LabelSelector, ObjectMeta
from mooring.api.timestamp import NO_TIME
from mooring.controllers.naming import hashed_name, template_hash
from mooring.controllers.owning import reference_to
from mooring.controllers.podmaking import TEMPLATE_HASH
from mooring.controllers.rollouts import Bounds, Sized

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ROLLBACK_TO = "deprecated.deployment.rollback.to"

HISTORY_MAX = 2000  # characters

_NOT_COPIED = frozenset(
    {LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO}
)


def born(value: ReplicaSet) -> tuple[object, str]:
    """Return what orders sets from the oldest to the newest."""
    time = value.metadata.creation_timestamp or NO_TIME
    return time.instant, value.metadata.name


def is_of_template(value: ReplicaSet, deployment: Deployment) -> bool:
    """Tell whether a set has the template of the deployment; the hash does not count."""
    return _plain(value.spec.template) == _plain(deployment.spec.template)


def _plain(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {k: v for k, v in template.metadata.labels.items() if k != TEMPLATE_HASH}
    return replace(template, metadata=replace(template.metadata, labels=labels))


def revision_of(value: ReplicaSet | Deployment) -> int:
    """Return the revision that an object has; 0 for none."""
    return parse_int64(value.metadata.annotations.get(REVISION, "")) or 0


def sized(value: ReplicaSet) -> Sized:
    """Return a set by its numbers."""
    replicas = 1 if value.spec.replicas is None else value.spec.replicas
    before = parse_int64(value.metadata.annotations.get(MAX_REPLICAS, ""))
    return Sized(
        value.metadata.name, replicas, value.status.available_replicas, born(value), before
    )


def is_sized_for(value: ReplicaSet, wanted: int) -> bool:
    """Tell whether a set was last sized for this wish of its deployment."""
    said = value.metadata.annotations.get(DESIRED_REPLICAS)
    return said is None or parse_int64(said) in (None, wanted)


def new_set(deployment: Deployment, bounds: Bounds, replicas: int, revision: int) -> ReplicaSet:
    """Return the replica set of the deployment's template."""
    template = deployment.spec.template
    mark = {TEMPLATE_HASH: template_hash(template, deployment.status.collision_count)}
    labels = {**template.metadata.labels, **mark}
    selector = deployment.spec.selector or LabelSelector()
    made = ReplicaSet(
        metadata=ObjectMeta(
            name=hashed_name(deployment.metadata.name, mark[TEMPLATE_HASH]),
            namespace=deployment.metadata.namespace,
            labels=labels,
            owner_references=(reference_to(deployment),),
        ),
        spec=ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=replace(selector, match_labels={**selector.match_labels, **mark}),
            template=replace(template, metadata=replace(template.metadata, labels=labels)),
        ),
    )
    return with_size(with_revision(made, deployment, revision), bounds, replicas)


def with_revision(value: ReplicaSet, deployment: Deployment, revision: int) -> ReplicaSet:
    """Return the new set with what the deployment says of it, and its revision."""
    copied = {k: v for k, v in deployment.metadata.annotations.items() if k not in _NOT_COPIED}
    annotations = {**value.metadata.annotations, **copied}
    before = value.metadata.annotations.get(REVISION)
    if revision_of(value) < revision:
        annotations[REVISION] = str(revision)
        if before is not None:
            annotations[REVISION_HISTORY] = _history(annotations.get(REVISION_HISTORY), before)
    spec = replace(value.spec, min_ready_seconds=deployment.spec.min_ready_seconds)
    return replace(value, metadata=replace(value.metadata, annotations=annotations), spec=spec)


def _history(told: str | None, revision: str) -> str:
    kept = [*(told.split(",") if told else ()), revision]
    while len(kept) > 1 and len(",".join(kept)) > HISTORY_MAX:
        kept.pop(0)
    return ",".join(kept)


def with_size(value: ReplicaSet, bounds: Bounds, replicas: int) -> ReplicaSet:
    """Return a set with another size, and for which wish it has it."""
    annotations = {
        **value.metadata.annotations,
        DESIRED_REPLICAS: str(bounds.wanted),
        MAX_REPLICAS: str(bounds.pods_max),
    }
    metadata = replace(value.metadata, annotations=annotations)
    return replace(value, metadata=metadata, spec=replace(value.spec, replicas=replicas))


def too_old(sets: Iterable[ReplicaSet], kept: int) -> list[ReplicaSet]:
    """Return the old sets that are not kept as history: the lowest revisions without pods."""
    there = [each for each in sets if each.metadata.deletion_timestamp is None]
    there.sort(key=lambda each: (revision_of(each), born(each)))
    return [each for each in there[: max(0, len(there) - kept)] if _is_empty(each)]


def _is_empty(value: ReplicaSet) -> bool:
    is_seen = value.status.observed_generation >= value.metadata.generation
    return is_seen and value.status.replicas == 0 and value.spec.replicas == 0
