"""Why claims cannot be allocated on a node, and what would help.

situation ─► trials ─► single changes that help ─► fixes
                │              │
                │              └─► minimal conflict ─► pairs, if no single change helps
                └─► problem ─► funnels
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mooring.allocator import Inventory
from mooring.allocator.errors import AllocationError
from mooring.allocator.pools import PoolState
from mooring.allocator.requests import claim_name, plan_of
from mooring.api.core.node import Node
from mooring.api.resource.v1 import ResourceClaim
from mooring.cel.device import DeviceCompiler
from mooring.insight.explain.conflict import (
    Conflict,
    Obstacles,
    find_conflict,
    node_view,
    obstacles_on,
)
from mooring.insight.explain.fixes import (
    Fix,
    asks_for_nothing,
    nearest,
    paired_fixes,
    single_changes,
    single_fixes,
)
from mooring.insight.explain.funnel import ConstraintValues, Funnel, Funnels, funnels
from mooring.insight.explain.situation import Situation
from mooring.insight.explain.trials import EFFORT, Effort, TrialKind, Trials


class UnusablePool(Struct, frozen=True):
    """A pool of the node whose devices cannot be allocated."""

    pool: str
    state: str  # incomplete or invalid
    reason: str


class Diagnosis(Struct, frozen=True):
    """Why claims cannot be allocated on a node."""

    situation: Situation
    message: str  # of the error that ended the attempt; "" if there was none
    node_only: bool  # whether other nodes may fit
    pools: tuple[UnusablePool, ...]
    funnels: tuple[Funnel, ...]
    values: tuple[ConstraintValues, ...]  # of the attributes that constraints are about
    obstacles: Obstacles
    conflict: Conflict
    fixes: tuple[Fix, ...]  # the nearest first
    trials: int  # how often the allocator was asked
    trials_given_up: int  # trials that took too long: there may be more fixes
    ended_by: str = ""  # what interrupted the diagnosis


def diagnose_claims(
    inventory: Inventory,
    node: Node,
    claims: Iterable[ResourceClaim],
    *,
    fleet_devices: int | None = None,
    effort: Effort = EFFORT,
) -> Diagnosis | None:
    """Return why claims cannot be allocated on a node; None if they can."""
    situation = Situation.of(inventory, node, claims, fleet_devices=fleet_devices)
    return diagnose(situation, compiler=inventory.compiler, effort=effort)


def diagnose(
    situation: Situation, *, compiler: DeviceCompiler | None = None, effort: Effort = EFFORT
) -> Diagnosis | None:
    """Return why the claims of a situation cannot be allocated; None if they can."""
    trials = Trials(situation, compiler=compiler, effort=effort)
    outcome = trials.outcome()
    if outcome.kind is TrialKind.POSSIBLE:
        return None
    obstacles = obstacles_on(trials.inventory, situation.node)
    pools = _unusable(trials.inventory, situation.node)
    shown = _funnels(trials)
    conflict, fixes = _explained(trials, obstacles)
    return Diagnosis(
        situation=situation,
        message=outcome.message,
        node_only=outcome.node_only,
        pools=pools,
        funnels=shown.funnels,
        values=shown.values,
        obstacles=obstacles,
        conflict=conflict,
        fixes=tuple(fixes),
        trials=trials.count,
        trials_given_up=trials.given_up,
        ended_by=trials.ended_by,
    )


def _explained(trials: Trials, obstacles: Obstacles) -> tuple[Conflict, list[Fix]]:
    if trials.is_possible() is None:
        return Conflict((), is_minimal=False), []
    helping = single_changes(trials, obstacles)
    fixes = single_fixes(trials, helping)
    trials.begin()
    conflict = find_conflict(trials, obstacles, helping)
    if all(asks_for_nothing(fix, trials.situation) for fix in fixes):
        trials.begin()
        fixes = [*paired_fixes(trials, obstacles, conflict, helping), *fixes]
    return conflict, nearest(fixes)


def _unusable(inventory: Inventory, node: Node) -> tuple[UnusablePool, ...]:
    view = node_view(inventory, node)
    pools = [] if view is None else view.seen
    return tuple(
        UnusablePool(str(pool.id), pool.state.value, pool.reason)
        for pool in pools
        if pool.state is not PoolState.USABLE
    )


def _funnels(trials: Trials) -> Funnels:
    """Return the funnels of all requests before the first that cannot be read."""
    situation, inventory = trials.situation, trials.inventory
    plan = plan_of(situation.claims, features=situation.features, classes=inventory.device_class)
    try:
        problem = inventory.problem(situation.node, plan)
    except AllocationError:
        return Funnels()
    count = situation.fleet_devices
    return funnels(
        problem,
        [claim_name(claim) for claim in situation.claims],
        in_fleet=inventory.devices_count if count is None else count,
        compiler=inventory.compiler,
    )
