"""Why claims cannot be allocated on a node, and what would help.

situation ─► trials ─► single changes that help ─► fixes
                │              │
                │              └─► minimal conflict ─► pairs, if no single change helps
                └─► problem ─► funnels
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from msgspec import Struct

from moorage.allocator import Inventory
from moorage.allocator.errors import AllocationError
from moorage.allocator.pools import PoolState
from moorage.allocator.requests import claim_name, plan_of
from moorage.api.core.node import Node
from moorage.api.resource.v1 import ResourceClaim
from moorage.cel.device import DeviceCompiler
from moorage.insight.explain.conflict import (
    Conflict,
    find_conflict,
    node_view,
    obstacles_on,
)
from moorage.insight.explain.fixes import (
    Fix,
    asks_for_nothing,
    nearest,
    paired_fixes,
    single_changes,
    single_fixes,
)
from moorage.insight.explain.funnel import Funnels, funnels
from moorage.insight.explain.situation import FreeClaim, Situation
from moorage.insight.explain.trials import EFFORT, Effort, TrialKind, Trials


class UnusablePool(Struct, frozen=True):
    """A pool of the node whose devices cannot be allocated."""

    pool: str
    state: str  # incomplete or invalid
    reason: str


class Diagnosis:
    """Why claims cannot be allocated on a node.

    What is counted is there at once. Conflict and fixes take trials, which are made when somebody
    asks for them: of most nodes nobody does.

    situation  the claims, and everything that decides about them
    message    of the error that ended the attempt; "" if there was none
    node_only  whether other nodes may fit
    pools      of the node whose devices cannot be allocated
    values     of the attributes that constraints are about
    """

    def __init__(self, trials: Trials, renew: Callable[[], Effort]) -> None:
        outcome, situation = trials.outcome(), trials.situation
        self.situation = situation
        self.message, self.node_only = outcome.message, outcome.node_only
        self.pools = _unusable(trials.inventory, situation.node)
        self.obstacles = obstacles_on(trials.inventory, situation.node)
        shown = _funnels(trials)
        self.funnels, self.values = shown.funnels, shown.values
        self._trials, self._renew = trials, renew

    @cached_property
    def _explained(self) -> tuple[Conflict, tuple[Fix, ...]]:
        trials, obstacles = self._trials, self.obstacles
        trials.begin(self._renew())
        if trials.is_possible() is None:
            return Conflict((), is_minimal=False), ()
        helping = single_changes(trials, obstacles)
        fixes = single_fixes(trials, helping)
        trials.begin()
        conflict = find_conflict(trials, obstacles, helping)
        if all(asks_for_nothing(fix, trials.situation) for fix in fixes):
            trials.begin()
            fixes = [*paired_fixes(trials, obstacles, conflict, helping), *fixes]
        return conflict, tuple(nearest(fixes))

    @property
    def conflict(self) -> Conflict:
        """What is impossible together."""
        return self._explained[0]

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """Changes that help, the nearest first."""
        return self._explained[1]

    def is_impossible_when_free(self) -> bool:
        """Return whether the claims could not be allocated if the node's others were released."""
        self._trials.begin(self._renew())
        released = [FreeClaim(*key) for key in self.obstacles.holders]
        return self._trials.is_possible(released) is False

    @property
    def trials(self) -> int:
        """How often the allocator was asked."""
        self._explained  # noqa: B018
        return self._trials.count

    @property
    def trials_given_up(self) -> int:
        """Trials that took too long: there may be more fixes."""
        self._explained  # noqa: B018
        return self._trials.given_up

    @property
    def ended_by(self) -> str:
        """What interrupted the diagnosis."""
        self._explained  # noqa: B018
        return self._trials.ended_by


def diagnose_claims(
    inventory: Inventory,
    node: Node,
    claims: Iterable[ResourceClaim],
    *,
    fleet_devices: int | None = None,
    effort: Callable[[], Effort] = lambda: EFFORT,
) -> Diagnosis | None:
    """Return why claims cannot be allocated on a node; None if they can.

    `effort` is called at the beginning, and once more when conflict and fixes are asked for.
    """
    situation = Situation.of(inventory, node, claims, fleet_devices=fleet_devices)
    trials = Trials(situation, compiler=inventory.compiler, effort=effort())
    return _diagnosed(trials, effort)


def diagnose(
    situation: Situation, *, compiler: DeviceCompiler | None = None, effort: Effort = EFFORT
) -> Diagnosis | None:
    """Return why the claims of a situation cannot be allocated; None if they can."""
    return _diagnosed(Trials(situation, compiler=compiler, effort=effort), lambda: effort)


def _diagnosed(trials: Trials, renew: Callable[[], Effort]) -> Diagnosis | None:
    is_possible = trials.outcome().kind is TrialKind.POSSIBLE
    return None if is_possible else Diagnosis(trials, renew)


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
