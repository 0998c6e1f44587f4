"""What the page shows at a moment, and results that questions about it share."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from moorage.api.resource.v1 import ResourceClaimSpec
from moorage.api.tolerations import DeviceName
from moorage.cel.lang.metering import Interrupt
from moorage.insight.devices import DeviceUsage
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.planner import Plan, Progress, plan, unwatched
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.insight.whatif import ChangedCluster, apply
from moorage.kit.checkpoints import checkpoint
from moorage.kit.lru import LRU
from moorage.validation.strategy import Context
from moorage.web.columns import Column
from moorage.web.fleet import Fleet
from moorage.web.questions.kept_cluster import ALL_S, EACH_S, KeptCluster
from moorage.web.scene import Scene

PAINTINGS_MAX: Final = 32
EXPLANATIONS_MAX: Final = 32
EVALUATION_S: Final = 5.0  # of an expression, for all devices
WAIT_S: Final = 1.0  # for another question, before a cluster is made for this one alone


class ShownMoment:
    """What the page shows at a moment."""

    def __init__(
        self,
        snapshot: Snapshot,
        fleet: Fleet,
        devices: Sequence[DeviceUsage],
        rows: Mapping[DeviceName, int],
        context: Context,
        copy_scene: Callable[[], Scene],
        kept: KeptCluster,
        before: ShownMoment | None = None,
    ) -> None:
        """Create a moment, which reuses what has not changed since the moment `before`."""
        self.snapshot, self.fleet, self.devices = snapshot, fleet, devices
        self._rows, self.context, self.copy_scene = rows, context, copy_scene
        self._kept = kept
        self.plan: Plan | None = None  # of all pending pods, if there is one
        # What questions have painted, by what it depends on.
        self.paintings: LRU[Hashable, dict[str, Any]] = LRU(PAINTINGS_MAX)
        self.explanations: LRU[tuple[str, str], dict[str, Any]] = LRU(EXPLANATIONS_MAX)
        if before is not None and _are_same(before.snapshot.slices, snapshot.slices):
            names = ("published", "published_rows") if before.has_rows(rows) else ("published",)
            self.__dict__ |= {
                name: before.__dict__[name] for name in names if name in before.__dict__
            }

    def has_rows(self, rows: Mapping[DeviceName, int]) -> bool:
        """Return whether the devices have these rows."""
        return self._rows is rows

    def row_of(self, device: DeviceName) -> int:
        """Return the row of a device, or -1 if it has none."""
        return self._rows.get(device, -1)

    @cached_property
    def published(self) -> PublishedDevices:
        """The published devices, as expressions see them."""
        return PublishedDevices(self.snapshot.slices, names=self.context.extensions)

    @cached_property
    def published_rows(self) -> list[int]:
        """The row of each published device, or -1."""
        names = (DeviceName(each.driver, each.pool, each.name) for each in self.published.devices)
        count = self.fleet.rows("devices")
        return [row if (row := self.row_of(name)) < count else -1 for name in names]

    @cached_property
    def _claims(self) -> dict[tuple[str, str, str], ResourceClaimSpec]:
        found = {key_of(each): each.spec for each in self.snapshot.claims}
        return found | {key_of(each): each.spec.spec for each in self.snapshot.templates}

    def find_spec(self, kind: str, namespace: str, name: str) -> ResourceClaimSpec | None:
        """Return the claim spec of a claim or template, or None if it does not exist."""
        return self._claims.get((kind, namespace, name))

    @property
    def askers(self) -> int:
        """How many use the cluster, or wait for it."""
        return self._kept.askers

    @contextmanager
    def alone(self) -> Iterator[Plan]:
        """Yield a plan in which no pod was tried yet, for this question alone."""
        if self.plan is not None:
            with self._kept.turn():
                yield self.plan
            return
        with self._kept.mine(WAIT_S) as kept:
            yield kept.plan(self.snapshot, self.context)

    @cached_property
    def before(self) -> tuple[ChangedCluster, Plan]:
        """The cluster without changes, and where its pending pods would go."""
        cluster = apply(self.snapshot, (), self.context)
        return cluster, bounded_plan(cluster.snapshot, self.context)

    @cached_property
    def placed(self) -> tuple[ChangedCluster, Plan]:
        """Like `before`, but do not use the cluster of this plan."""
        if "before" in self.__dict__:
            return self.before
        cluster = apply(self.snapshot, (), self.context)
        return cluster, self.placed_in(cluster.snapshot)

    def placed_in(self, snapshot: Snapshot) -> Plan:
        """Return the plan of a snapshot much like this one; its cluster is not to be used."""
        with self._kept.mine(WAIT_S) as kept:
            found = kept.placed(snapshot, self.context)
            kept.plan(self.snapshot, self.context)  # so that nothing that was asked for is kept
            return found

    def column(self, marks: Iterable[tuple[Iterable[PublishedDevice], int]]) -> Column:
        """Return a column over the devices of the fleet, with 0 for unmarked devices."""
        found, rows = [0] * self.fleet.rows("devices"), self.published_rows
        for devices, mark in marks:
            for device in devices:
                if (row := rows[device.index]) >= 0:
                    found[row] = mark
        return found


def bounded_plan(snapshot: Snapshot, context: Context, progress: Progress = unwatched) -> Plan:
    """Return the plan of a snapshot, in bounded time, or raise TooManyPodsError."""
    limit = EvaluationLimit(time.monotonic, each_s=EACH_S, all_s=ALL_S)
    return plan(snapshot, context, progress=progress, limit=limit)


def ends_after(seconds: float) -> Interrupt:
    """Return what ends evaluations so many seconds from now."""
    end_s = time.monotonic() + seconds

    def interrupt() -> str | None:
        checkpoint()
        return f"it takes more than {seconds:g} s" if time.monotonic() > end_s else None

    return interrupt


def _are_same(before: Sequence[object], after: Sequence[object]) -> bool:
    return len(before) == len(after) and all(
        old is new for old, new in zip(before, after, strict=True)
    )
