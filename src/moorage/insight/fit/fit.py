"""How many replicas fit, where, what stops the next one, and what would raise the number.

# wanted: replicas that are asked for already and have no node; they are the first of those counted
# running: replicas that have a node; they are none of those counted

snapshot ─ others planned ─ replica after replica ─ rejected ─┬─ limits of nodes
                                                              ├─ devices left over
                                                              └─ changes, each tried: levers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from moorage.claims.pod_claims import ClaimFeatures
from moorage.insight.errors import UnreadError
from moorage.insight.fit.device_supply import DeviceSupply, bound_of, supplies_of
from moorage.insight.fit.levers import Lever, Runner, changes_of, levers_of
from moorage.insight.fit.limits import Leftover, Limit, fullness_of, leftovers_of, limits_of
from moorage.insight.fit.replicas import (
    Model,
    ReplicaFiller,
    Replicas,
    Subject,
    asked_of,
    model_of,
)
from moorage.insight.messages import Concern, counted
from moorage.insight.plan.placements import Placement, placement_of
from moorage.insight.plan.planner import Plan, Progress, plan_completed, unwatched
from moorage.insight.plan.unknown import unknown_of
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.resource_claim_status import RESERVED_FOR_MAX
from moorage.validation.strategy import Context

REPLICAS_MAX = 10_000


class NodeReplicas(Struct, frozen=True, rename="camel"):
    """The replicas that a node takes."""

    node: str
    replicas: int
    placements: tuple[Placement, ...]  # with the devices of each replica


class Supply(Struct, frozen=True, rename="camel"):
    """The devices for a request before the first replica."""

    request: str
    wanted: int
    free: int
    matching: int
    is_countable: bool  # a replica takes a known number of whole devices


class Fit(Struct, frozen=True, rename="camel"):
    """How many replicas fit beside those that run, and how many of them are wanted already."""

    subject: str
    total: int  # those that are wanted included
    is_more: bool  # more may fit: the maximum was reached
    nodes: int
    wanted: int = 0
    running: int = 0
    places: tuple[NodeReplicas, ...] = ()
    limits: tuple[Limit, ...] = ()
    message: str = ""  # Kubernetes' message about the first that does not fit
    supplies: tuple[Supply, ...] = ()
    bound: int | None = None  # if nothing but the number of free devices mattered
    leftovers: tuple[Leftover, ...] = ()
    combined: int | None = None  # replicas that these would suffice for together
    levers: tuple[Lever, ...] = ()  # what would raise the number
    futile: tuple[Lever, ...] = ()  # what would not raise it: the next limit is as close
    notes: tuple[str, ...] = ()

    @property
    def more(self) -> int:
        """How many replicas fit beyond those that run and are wanted."""
        return max(self.total - self.wanted, 0)

    @property
    def headline(self) -> str:
        """The number that fits, how many of these are wanted already, and how many are more."""
        fit = "fits" if self.total == 1 else "fit"
        if not self.total:
            beside = f" beside the {self.running:,} with a node" if self.running else ""
            return f"{self.subject}: no {'more ' * bool(self.running)}replica fits{beside}"
        if not self.wanted:
            return f"{self.subject}: {counted(self.total, 'more replica')} {fit}"
        beside = f" beside {self.running:,} with a node" if self.running else ""
        if self.more:
            then = f": {self.more:,} more"
        elif self.is_more:
            then = ""
        else:
            lacking = self.wanted - self.total
            then = f": {lacking:,} too few" if lacking else ": no more"
        number = f"{counted(self.total, 'replica')} {fit}"
        return f"{self.subject}: {number} ({self.wanted:,} wanted{beside}){then}"

    @property
    def where(self) -> str:
        """On how many nodes they are: `on 2 of 4 nodes`."""
        return f"on {len(self.places)} of {counted(self.nodes, 'node')}"

    def shares(self, nodes: Sequence[str]) -> str:
        """Return how many replicas each of some nodes takes, and all: `2 each, 4 in all`."""
        taken = {each.node: each.replicas for each in self.places}
        counts = [taken.get(node, 0) for node in nodes]
        low, high = min(counts, default=0), max(counts, default=0)
        if len(counts) < 2 or not high:
            return f"{sum(counts) if nodes else self.total:,}"
        each = f"{low:,} each" if low == high else f"{low:,} to {high:,} each"
        return f"{each}, {sum(counts):,} in all"


class Fitted(Struct, frozen=True):
    """The fit, and concerns to know before believing it."""

    fit: Fit
    concerns: tuple[Concern, ...]
    planned: Plan  # everything but the replicas


def fit(
    snapshot: Snapshot,
    subject: Subject,
    context: Context,
    *,
    replicas_max: int = REPLICAS_MAX,
    with_levers: bool = True,
    progress: Progress = unwatched,
) -> Fitted | Concern:
    """Return how many replicas of a subject fit, or why there can be none.

    All other pods are planned first. Replicas that have no node yet are among those counted.
    Raise UnreadError if what decides could not be read.
    """
    model = model_of(subject, snapshot, context)
    if isinstance(model, Concern):
        return model
    _check_known(model, snapshot)
    completed = complete(snapshot, context)
    asked = asked_of(subject, completed.snapshot)
    planned = plan_completed(completed, context, left_out=asked.waiting)
    fitter = _Fitter(planned, context)
    found = fitter.fit(model, replicas_max, progress, with_levers=with_levers)
    found = replace(found, wanted=asked.wanted, running=asked.running)
    return Fitted(found, planned.concerns, planned)


def _check_known(model: Model, snapshot: Snapshot) -> None:
    """Raise UnreadError if what decides about replicas could not be read."""
    if snapshot.unread:
        found = unknown_of(snapshot.with_objects(model.templates), model.pod)
        if found is not None:
            raise UnreadError(found.hidden, f"how many replicas of {model.title} fit")


def fit_planned(
    planned: Plan, subject: Subject, context: Context, *, replicas_max: int
) -> Fit | Concern:
    """Return how many more replicas of a claim fit once all pods have been planned.

    Nothing that would raise the number is tried; the plan's cluster is as before afterwards.
    """
    model = model_of(subject, planned.before, context)
    if isinstance(model, Concern):
        return model
    return _Fitter(planned, context).fit(model, replicas_max, unwatched, with_levers=False)


class _Fitter:
    """Tries models on a cluster, and restores it."""

    def __init__(self, planned: Plan, context: Context) -> None:
        self._cluster = planned.cluster
        self._features = ClaimFeatures.of(context.gates)
        before = planned.before
        self._assumption = planned.assumption
        self._around = Snapshot(
            composite_groups=before.composite_groups,
            groups=before.groups,
            pods=before.pods,
            claims=tuple(self._cluster.claims.values()),
        )

    def fit(self, model: Model, replicas_max: int, progress: Progress, *, with_levers: bool) -> Fit:
        """Return how many replicas of a model fit."""
        filler = self._filler(model)
        room, notes = self._shared_room(model)
        first = filler.ask()
        supplies = () if isinstance(first, Pending) else supplies_of(first, model.shared)
        tried_max = min(room, replicas_max)
        filler.run(tried_max, progress)
        found = _answer(model, filler, supplies)
        refused, changes = filler.refused, []
        if refused is not None and with_levers:
            changes = list(changes_of(model, refused, found.limits))
        elif refused is None and room <= replicas_max:
            limit = Limit((), found.total, (notes[-1],))
            found = replace(found, limits=(limit,), is_more=False)
        filler.empty()
        runner = Runner(self._cluster, self._filler, tried_max, progress)
        levers, futile = levers_of(changes, found.total, runner)
        return replace(found, levers=levers, futile=futile, notes=tuple(notes))

    def _filler(self, model: Model) -> ReplicaFiller:
        return ReplicaFiller(self._cluster, Replicas(model, self._around, self._features))

    def _shared_room(self, model: Model) -> tuple[int, list[str]]:
        """Return how many pods can still share the model's claims, and notes about that."""
        notes = [f"{self._assumption}, so fewer may fit"] if self._assumption else []
        if model.group is not None:
            notes.append(f"replicas are placed one by one, not as pod group {model.group} asks")
        room = 10**9
        for name in model.shared:
            notes.append(f"all replicas share claim {name}")
            claim = self._cluster.find_claim(model.pod.metadata.namespace, name)
            reserved = () if claim is None else claim.status.reserved_for
            if model.group is None and RESERVED_FOR_MAX - len(reserved) < room:
                room = RESERVED_FOR_MAX - len(reserved)
        if room < 10**9:
            notes.append(f"a claim can be reserved for {RESERVED_FOR_MAX} pods at most")
        return max(room, 0), notes


def _answer(model: Model, filler: ReplicaFiller, supplies: Sequence[DeviceSupply]) -> Fit:
    refused, placed = filler.refused, filler.placed
    counts = Counter(each.node for each in placed)
    found = Fit(
        subject=model.title,
        total=len(placed),
        is_more=refused is None,
        nodes=len(filler.cluster.snapshot.nodes),
        places=_places(placed),
        supplies=tuple(map(_supply, supplies)),
        bound=bound_of(supplies),
    )
    if refused is None:
        return found
    fullness = fullness_of(refused)
    left = () if refused.ready is None else supplies_of(refused.ready, model.shared)
    return replace(
        found,
        limits=tuple(limits_of(refused, fullness, counts)),
        message=refused.pending.message,
        leftovers=leftovers_of(left, fullness),
        combined=bound_of(left),
    )


def _places(placed: Sequence[Reservation]) -> tuple[NodeReplicas, ...]:
    by_node: dict[str, list[Placement]] = {}
    for each in placed:
        by_node.setdefault(each.node, []).append(placement_of(each))
    return tuple(
        NodeReplicas(node, len(found), tuple(found)) for node, found in sorted(by_node.items())
    )


def _supply(supply: DeviceSupply) -> Supply:
    return Supply(
        supply.request, supply.wanted, supply.free_count, len(supply.matching), supply.is_countable
    )
