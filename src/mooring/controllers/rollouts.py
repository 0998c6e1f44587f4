"""How many pods each replica set of a deployment gets next: the arithmetic of rollouts.

# new: the set of the current template; old: all others; wanted: the replicas of the deployment
# surge: how many pods more there may be for a while; unavailable: how many fewer may be available
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mooring.api.apps import Deployment
from mooring.api.gointegers import parse_int64

ROLLING = "RollingUpdate"
RECREATE = "Recreate"

_DEFAULT = "25%"


class Sized(NamedTuple):
    """A replica set by its numbers."""

    name: str
    replicas: int
    available: int
    born: Any  # what orders sets by age
    max_before: int | None = None  # how many pods there could be when it was last sized


class Bounds(NamedTuple):
    """What a deployment wants, and how far it may be off while it rolls."""

    wanted: int
    surge: int
    unavailable: int
    is_rolling: bool

    @property
    def pods_max(self) -> int:
        """How many pods there may be together."""
        return self.wanted + self.surge


Sizes = dict[str, int]  # replicas by the names of sets; those that stay are not in it


def bounds_of(deployment: Deployment) -> Bounds:
    """Return the bounds, with Kubernetes' defaults where nothing is said."""
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    strategy = deployment.spec.strategy
    if strategy.type == RECREATE:
        return Bounds(wanted, 0, 0, is_rolling=False)
    said = strategy.rolling_update if isinstance(strategy.rolling_update, dict) else {}
    surge = part_of(said.get("maxSurge", _DEFAULT), wanted, rounds_up=True)
    unavailable = part_of(said.get("maxUnavailable", _DEFAULT), wanted, rounds_up=False)
    if surge == unavailable == 0:
        unavailable = 1  # or nothing could ever move
    return Bounds(wanted, surge, min(unavailable, wanted), is_rolling=True)


def part_of(said: Any, whole: int, *, rounds_up: bool) -> int:
    """Return a number, or a part in percent of a whole; what is neither counts as nothing."""
    if isinstance(said, str) and said.endswith("%"):
        percent = parse_int64(said[:-1]) or 0
        return max(0, -(-whole * percent // 100) if rounds_up else whole * percent // 100)
    return max(0, said) if isinstance(said, int) else 0


def first_size(bounds: Bounds, old: list[Sized]) -> int:
    """Return with how many pods a new set begins."""
    if not bounds.is_rolling:
        return bounds.wanted
    return _grown(bounds, 0, sum(each.replicas for each in old))


def _grown(bounds: Bounds, replicas: int, total: int) -> int:
    room = bounds.pods_max - total
    return replicas if room <= 0 else replicas + max(0, min(room, bounds.wanted - replicas))


def rolled(bounds: Bounds, new: Sized, old: list[Sized]) -> Sizes:
    """Return the next step of a rolling update: more new pods first, then fewer old ones."""
    if new.replicas > bounds.wanted:
        return {new.name: bounds.wanted}
    total = new.replicas + sum(each.replicas for each in old)
    size = _grown(bounds, new.replicas, total)
    if size != new.replicas:
        return {new.name: size}
    return _shrunk(bounds, new, old, total)


def _shrunk(bounds: Bounds, new: Sized, old: list[Sized], total: int) -> Sizes:
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


def scaled(bounds: Bounds, new: Sized | None, old: list[Sized], had: int) -> Sizes:
    """Return sizes after the wish changed amid a rollout: every set keeps its share.

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


def _shared(bounds: Bounds, active: list[Sized], had: int) -> Sizes:
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


def _share(bounds: Bounds, each: Sized, had: int) -> int:
    if bounds.wanted == 0:
        return -each.replicas
    before = each.max_before or had
    if before == 0:
        return 0
    # Half a pod counts as one, as Go rounds.
    size = (2 * each.replicas * bounds.pods_max + before) // (2 * before)
    return size - each.replicas
