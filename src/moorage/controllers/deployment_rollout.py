"""How many pods each replica set of a deployment gets next: the arithmetic of rollouts.

# new: the set of the current template; old: all others; wanted: the replicas of the deployment
# surge: how many pods more there may be for a while; unavailable: how many fewer may be available
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import Deployment, ReplicaSet, ReplicaSetSpec
from moorage.api.core import PodTemplateSpec
from moorage.api.go_integers import parse_int64
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.timestamp import NO_TIME
from moorage.controllers.controller_ref_manager import reference_to
from moorage.controllers.pod_control import TEMPLATE_HASH, hashed_name, template_hash

ROLLING = "RollingUpdate"
RECREATE = "Recreate"

_DEFAULT = "25%"
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


class SizedReplicaSet(NamedTuple):
    """A replica set by its numbers."""

    name: str
    replicas: int
    available: int
    born: Any  # what orders sets by age
    max_before: int | None = None  # how many pods there could be when it was last sized


class RolloutBounds(NamedTuple):
    """The desired replicas of a deployment, and the bounds during a rollout."""

    wanted: int
    surge: int
    unavailable: int
    is_rolling: bool

    @property
    def pods_max(self) -> int:
        """How many pods there may be together."""
        return self.wanted + self.surge


Sizes = dict[str, int]  # replicas by the names of sets; those that stay are not in it


def bounds_of(deployment: Deployment) -> RolloutBounds:
    """Return the bounds, with Kubernetes' defaults where nothing is said."""
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    strategy = deployment.spec.strategy
    if strategy.type == RECREATE:
        return RolloutBounds(wanted, 0, 0, is_rolling=False)
    said = strategy.rolling_update if isinstance(strategy.rolling_update, dict) else {}
    surge = part_of(said.get("maxSurge", _DEFAULT), wanted, rounds_up=True)
    unavailable = part_of(said.get("maxUnavailable", _DEFAULT), wanted, rounds_up=False)
    if surge == unavailable == 0:
        unavailable = 1  # or nothing could ever move
    return RolloutBounds(wanted, surge, min(unavailable, wanted), is_rolling=True)


def part_of(said: Any, whole: int, *, rounds_up: bool) -> int:
    """Return a number, or a part in percent of a whole; anything else counts as 0."""
    if isinstance(said, str) and said.endswith("%"):
        percent = parse_int64(said[:-1]) or 0
        return max(0, -(-whole * percent // 100) if rounds_up else whole * percent // 100)
    return max(0, said) if isinstance(said, int) else 0


def first_size(bounds: RolloutBounds, old: list[SizedReplicaSet]) -> int:
    """Return with how many pods a new set begins."""
    if not bounds.is_rolling:
        return bounds.wanted
    return _grown(bounds, 0, sum(each.replicas for each in old))


def _grown(bounds: RolloutBounds, replicas: int, total: int) -> int:
    room = bounds.pods_max - total
    return replicas if room <= 0 else replicas + max(0, min(room, bounds.wanted - replicas))


def rolled(bounds: RolloutBounds, new: SizedReplicaSet, old: list[SizedReplicaSet]) -> Sizes:
    """Return the next step of a rolling update: more new pods first, then fewer old ones."""
    if new.replicas > bounds.wanted:
        return {new.name: bounds.wanted}
    total = new.replicas + sum(each.replicas for each in old)
    size = _grown(bounds, new.replicas, total)
    if size != new.replicas:
        return {new.name: size}
    return _shrunk(bounds, new, old, total)


def _shrunk(
    bounds: RolloutBounds, new: SizedReplicaSet, old: list[SizedReplicaSet], total: int
) -> Sizes:
    """Return smaller old sets: pods that do not run go first, then as many as others replace."""
    at_least = bounds.wanted - bounds.unavailable
    may_go = total - at_least - (new.replicas - new.available)
    sizes: Sizes = {}
    by_age = sorted((each for each in old if each.replicas), key=lambda each: each.born)
    for each in by_age:
        broken = min(each.replicas - each.available, may_go)
        if broken > 0:
            sizes[each.name] = each.replicas - broken
            may_go -= broken
    if may_go <= 0 and not sizes:
        return sizes
    spare = new.available + sum(each.available for each in old) - at_least
    for each in by_age:
        size = sizes.get(each.name, each.replicas)
        going = min(size, spare)
        if going > 0:
            sizes[each.name] = size - going
            spare -= going
    return sizes


def scaled(
    bounds: RolloutBounds, new: SizedReplicaSet | None, old: list[SizedReplicaSet], had: int
) -> Sizes:
    """Return sizes after `replicas` changed amid a rollout: every set keeps its share.

    `had` is how many pods the deployment had, for sets that do not say how many there could be.
    """
    sets = [*old, new] if new is not None else old
    active = [each for each in sets if each.replicas > 0]
    if len(active) <= 1:
        only = active[0] if active else new or max(old, key=lambda s: s.born, default=None)
        return {only.name: bounds.wanted} if only and only.replicas != bounds.wanted else {}
    if new and new.replicas == new.available == bounds.wanted:
        return {each.name: 0 for each in old if each.replicas > 0}
    return _shared(bounds, active, had) if bounds.is_rolling else {}


def _shared(bounds: RolloutBounds, active: list[SizedReplicaSet], had: int) -> Sizes:
    allowed = bounds.pods_max if bounds.wanted > 0 else 0
    left = allowed - sum(each.replicas for each in active)
    if left == 0:
        return {}
    # The largest first; of the same size the newer grow first, and the older shrink first.
    ranked = sorted(active, key=lambda each: each.born, reverse=left > 0)
    ranked.sort(key=lambda each: -each.replicas)
    sizes: Sizes = {}
    for each in ranked:
        share = _share(bounds, each, had)
        share = min(share, left) if left > 0 else max(share, left)
        sizes[each.name] = each.replicas + share
        left -= share
        if left == 0:
            break
    sizes[ranked[0].name] = max(0, sizes[ranked[0].name] + left)
    return {each.name: sizes[each.name] for each in ranked if each.name in sizes}


def _share(bounds: RolloutBounds, each: SizedReplicaSet, had: int) -> int:
    if bounds.wanted == 0:
        return -each.replicas
    before = each.max_before or had
    if before == 0:
        return 0
    # Half a pod counts as one, as Go rounds.
    size = (2 * each.replicas * bounds.pods_max + before) // (2 * before)
    return size - each.replicas


def born(value: ReplicaSet) -> tuple[object, str]:
    """Return what orders sets from the oldest to the newest."""
    time = value.metadata.creation_timestamp or NO_TIME
    return time.instant, value.metadata.name


def is_of_template(value: ReplicaSet, deployment: Deployment) -> bool:
    """Return whether a set has the template of the deployment; the hash does not count."""
    return _plain(value.spec.template) == _plain(deployment.spec.template)


def _plain(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {k: v for k, v in template.metadata.labels.items() if k != TEMPLATE_HASH}
    return replace(template, metadata=replace(template.metadata, labels=labels))


def revision_of(value: ReplicaSet | Deployment) -> int:
    """Return the revision that an object has; 0 for none."""
    return parse_int64(value.metadata.annotations.get(REVISION, "")) or 0


def sized(value: ReplicaSet) -> SizedReplicaSet:
    """Return a set by its numbers."""
    replicas = 1 if value.spec.replicas is None else value.spec.replicas
    before = parse_int64(value.metadata.annotations.get(MAX_REPLICAS, ""))
    return SizedReplicaSet(
        value.metadata.name, replicas, value.status.available_replicas, born(value), before
    )


def is_sized_for(value: ReplicaSet, wanted: int) -> bool:
    """Return whether a set was last sized for these replicas of its deployment."""
    said = value.metadata.annotations.get(DESIRED_REPLICAS)
    return said is None or parse_int64(said) in (None, wanted)


def new_set(
    deployment: Deployment, bounds: RolloutBounds, replicas: int, revision: int
) -> ReplicaSet:
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
    """Return the new replica set with the deployment's settings and its revision."""
    copied = {k: v for k, v in deployment.metadata.annotations.items() if k not in _NOT_COPIED}
    annotations = {**value.metadata.annotations, **copied}
    before = value.metadata.annotations.get(REVISION)
    if revision_of(value) < revision:
        annotations[REVISION] = str(revision)
        if before is not None:
            annotations[REVISION_HISTORY] = _history(annotations.get(REVISION_HISTORY), before)
    spec = replace(value.spec, min_ready_seconds=deployment.spec.min_ready_seconds)
    return replace(value, metadata=replace(value.metadata, annotations=annotations), spec=spec)


def _history(old: str | None, revision: str) -> str:
    kept = [*(old.split(",") if old else ()), revision]
    while len(kept) > 1 and len(",".join(kept)) > HISTORY_MAX:
        kept.pop(0)
    return ",".join(kept)


def with_size(value: ReplicaSet, bounds: RolloutBounds, replicas: int) -> ReplicaSet:
    """Return a set with another size, and the replicas of the deployment that it was sized for."""
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
