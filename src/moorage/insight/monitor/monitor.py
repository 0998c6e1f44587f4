"""Computes the figures of a changing cluster.

    objects ─ without disabled fields ─► snapshot ─┬─ devices by state      moorage.insight.devices
                                                   ├─ classes that select them
                                                   ├─ plan ─┬─ pods by cause    insight.answer
                                                   │        └─ room for shapes  insight.fit
                                                   └─ claims by state and age

The same functions answer `moor devices`, `moor explain` and `moor fit`, so the numbers agree.
Objects come from informers, where unchanged objects stay identical; results that depend on
unchanged objects alone are reused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import is_
from typing import Any, Final

from moorage.api.timestamp import Timestamp
from moorage.insight.answer.answer import cause_kinds
from moorage.insight.devices import (
    ClaimState,
    DeviceState,
    DeviceUsage,
    devices_changed,
    devices_in,
    state_of,
)
from moorage.insight.devices.model import CountKey, StateCounts, count_states
from moorage.insight.devices.node_selection import only_node
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.expressions.evaluation import (
    InvalidExpression,
    Selected,
    compiler_for,
    selected_by_class,
)
from moorage.insight.messages import full_name
from moorage.insight.monitor.figures import FITS_NOW, Figures, WaitingPod
from moorage.insight.monitor.shapes import Shape, common_shapes, room_for
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.builder import without_disabled
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.reservation import Reservation
from moorage.validation.strategy import Context

SELECTED_NODES: Final = "<selector>"
_DECIDES_ABOUT_ROOM = ("Node", "ResourceSlice", "DeviceClass", "ResourceClaim", "Pod")
SHAPES_MAX: Final = 16
SHAPE_CLAIMS_MAX: Final = 1000  # to try per shape

ClassSelections = dict[str, Selected | InvalidExpression]


class Monitor:
    """Computes the figures of one cluster, again and again.

    `effort` bounds each search for a cause; `limit` creates a limit for expressions.
    """

    def __init__(
        self,
        context: Context,
        *,
        shapes: Sequence[Shape] = (),
        shapes_max: int = SHAPES_MAX,
        claims_max: int = SHAPE_CLAIMS_MAX,
        effort: Callable[[], Effort] = lambda: EFFORT,
        limit: Callable[[], EvaluationLimit | None] = lambda: None,
    ) -> None:
        self._context = context
        self._declared, self._shapes_max, self._claims_max = tuple(shapes), shapes_max, claims_max
        self._effort, self._limit = effort, limit
        self._prepared: dict[int, tuple[Any, Any]] = {}  # by id of objects, which are kept alive
        self._before: tuple[Snapshot, tuple[DeviceUsage, ...]] | None = None
        self._selected: tuple[Snapshot, ClassSelections] | None = None

    def figures(self, objects: Iterable[Any], now: datetime) -> Figures:
        """Return the figures of a cluster with these objects."""
        context = self.context(now)
        return self.figures_of(self.snapshot(objects, context), context)

    def context(self, now: datetime) -> Context:
        """Return everything but objects that the figures depend on."""
        return self._context._replace(now=Timestamp(now))

    def plan(self, objects: Iterable[Any], now: datetime) -> Plan:
        """Return where the pods without a node would go."""
        context = self.context(now)
        return plan(self.snapshot(objects, context), context, limit=self._limit())

    def snapshot(self, objects: Iterable[Any], context: Context) -> Snapshot:
        """Return the objects as a snapshot, without fields that the gates disable."""
        prepared: dict[int, tuple[Any, Any]] = {}
        for each in objects:
            known = self._prepared.get(id(each))
            prepared[id(each)] = known or (each, without_disabled(each, context))
        self._prepared = prepared
        return Snapshot.of(value for _, value in prepared.values())

    def figures_of(self, snapshot: Snapshot, context: Context) -> Figures:
        """Return the figures of a snapshot: none of what could not all be read."""
        known = snapshot.unread.knows
        devices = self._devices(snapshot, context)
        selections = self._selections(snapshot)
        planned = plan(snapshot, context, limit=self._limit())
        common, left_out = common_shapes(
            planned.before, max(self._shapes_max - len(self._declared), 0)
        )
        shapes = (*self._declared, *common)
        return Figures(
            devices=count_states(devices, _by_node) if known("ResourceSlice") else {},
            classes=_by_class(devices, selections) if known("ResourceSlice") else {},
            invalid_classes=frozenset(
                name for name, found in selections.items() if isinstance(found, InvalidExpression)
            ),
            waiting=tuple(_waiting(planned, context, self._effort)),
            claims=_claims(snapshot, context.now.instant) if known("ResourceClaim") else {},
            shapes=(
                ()
                if snapshot.unread.hidden(_DECIDES_ABOUT_ROOM)
                else room_for(shapes, planned, context, claims_max=self._claims_max)
            ),
            shapes_left_out=left_out,
            unread=tuple(each.resource for each in snapshot.unread.kinds),
        )

    def _devices(self, snapshot: Snapshot, context: Context) -> tuple[DeviceUsage, ...]:
        if self._before is None:
            found = devices_in(snapshot, context)
        else:
            before, devices = self._before
            found = devices_changed(devices, before, snapshot, context)
        self._before = snapshot, found
        return found

    def _selections(self, snapshot: Snapshot) -> ClassSelections:
        """Return the devices that each class selects; only changed slices are evaluated again."""
        if self._selected is not None:
            before, found = self._selected
            same = (before.slices, snapshot.slices), (before.classes, snapshot.classes)
            if all(len(old) == len(new) and all(map(is_, old, new)) for old, new in same):
                return found
        compiler = compiler_for(self._context.gates, extensions=self._context.extensions)
        found = {
            each.metadata.name: selected_by_class(snapshot.slices, each, compiler)
            for each in snapshot.classes
        }
        self._selected = snapshot, found
        return found


def _by_node(holding: DeviceUsage) -> CountKey:
    """Return the node that can use a device, or a word for several, and its driver.

    A selector has no bounded length, and may look like a name.
    """
    place = holding.node_selection
    is_open = place.selector is not None and not (place.node or only_node(place.selector))
    return SELECTED_NODES if is_open else str(place), holding.id.driver


def _by_class(
    devices: Iterable[DeviceUsage], selections: ClassSelections
) -> dict[str, StateCounts]:
    found = {name: StateCounts(Counter()) for name in sorted(selections)}
    for each in devices:
        if each.state is DeviceState.MISSING:
            continue  # Only its name is known.
        for name, selected in selections.items():
            if not isinstance(selected, InvalidExpression) and each.id in selected.names:
                found[name].states[each.state] += 1
    return found


def _waiting(planned: Plan, context: Context, effort: Callable[[], Effort]) -> Iterator[WaitingPod]:
    """Yield every pod without a node, in the order of the snapshot."""
    causes = {
        full_name(each.pod): kind for each, kind in cause_kinds(planned, context, effort=effort)
    }
    for result in planned.results:
        metadata = result.pod.metadata
        is_placed = isinstance(result, Reservation)
        created = metadata.creation_timestamp
        yield WaitingPod(
            metadata.namespace,
            metadata.name,
            FITS_NOW if is_placed else str(causes[full_name(result.pod)]),
            None if created is None else created.instant,
        )


def _claims(snapshot: Snapshot, now: datetime) -> dict[ClaimState, tuple[datetime, ...]]:
    """Return the creation times of claims by state, or deletion times if they are being deleted."""
    found: dict[ClaimState, list[datetime]] = {state: [] for state in ClaimState}
    for claim in snapshot.claims:
        metadata = claim.metadata
        since = metadata.deletion_timestamp or metadata.creation_timestamp
        # Objects that no server has seen have no creation time: they count as new.
        found[state_of(claim)].append(now if since is None else since.instant)
    return {state: tuple(sorted(times)) for state, times in found.items()}
