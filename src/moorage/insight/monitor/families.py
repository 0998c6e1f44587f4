"""Figures as metrics.

Names come from users, so the values of each label are bounded: the first values in natural order
keep their names, and all others are counted together as `<other>`. The order depends on names only,
so series do not come and go with the numbers. `state` and `cause` have fixed sets of values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from moorage.insight.devices import ClaimState, DeviceState
from moorage.insight.devices.model import StateCounts, shown_states
from moorage.insight.messages import natural_order
from moorage.insight.monitor.figures import Figures, RequestRoom
from moorage.kit.metrics import Family, Gauge, Labels, number_text

OTHER: Final = "<other>"  # no name in a cluster looks like this
AGES_S: Final = (60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0)
REQUESTS_MAX: Final = 8  # per shape

Counts = dict[Labels, float]


class LabelLimits(NamedTuple):
    """How many values each label may have."""

    nodes: int = 1000
    drivers: int = 50
    classes: int = 100
    namespaces: int = 100


class MonitorFamilies:
    """The metrics of the figures that `look` returns, at the time that `now` returns."""

    def __init__(
        self,
        look: Callable[[], Figures],
        now: Callable[[], datetime],
        limits: LabelLimits | None = None,
    ) -> None:
        self._look, self._now, self._limits = look, now, limits or LabelLimits()

    def families(self) -> Iterator[Family]:
        """Yield all metrics."""
        yield Gauge(
            "moorage_devices",
            "Devices by driver, the nodes that can use them, and state, as in moor devices.",
            ("driver", "node", "state"),
            self._devices,
        )
        yield Gauge(
            "moorage_class_devices",
            "Devices that a DeviceClass selects, by state. A device counts for each such class.",
            ("device_class", "state"),
            self._classes,
        )
        yield from self._of_shapes()
        yield Gauge(
            "moorage_pending_pods",
            "Pods without a node by namespace and kind of cause, as moor explain finds it; "
            "fits-now: the scheduler has not come to them yet.",
            ("namespace", "cause"),
            self._pending,
        )
        yield Gauge(
            "moorage_pending_pods_oldest_seconds",
            "Age of the oldest pod without a node, by kind of cause.",
            ("cause",),
            self._oldest_pending,
        )
        yield from self._of_claims()
        yield Gauge(
            "moorage_folded_label_values",
            "Label values that are counted as `<other>` or, for shapes, left out, by label.",
            ("label",),
            self._folded,
        )
        yield Gauge(
            "moorage_unread_resources",
            "Resources of which some could not be read: what depends on all of them is left out.",
            ("resource",),
            lambda: {(each,): 1 for each in self._look().unread},
        )

    # --- devices ------------------------------------------------------------------------------

    def _devices(self) -> Counts:
        found: Counts = {}
        for (node, driver), counts in self._look().devices.items():
            for state, number in _by_state(counts):
                key = (driver, node, state)
                found[key] = found.get(key, 0) + number
        return folded(folded(found, 0, self._limits.drivers), 1, self._limits.nodes)

    def _classes(self) -> Counts:
        found: Counts = {
            (name, state): number
            for name, counts in self._look().classes.items()
            for state, number in _by_state(counts)
            if state != DeviceState.MISSING
        }
        return folded(found, 0, self._limits.classes)

    # --- shapes -------------------------------------------------------------------------------

    def _of_shapes(self) -> Iterator[Family]:
        yield Gauge(
            "moorage_shape_claims",
            "How many more claims of a shape get devices, as moor fit counts them.",
            ("shape",),
            lambda: {(each.shape,): each.claims for each in self._look().shapes},
        )
        for attribute, text in (
            ("matching", "Devices that a request of a shape could have, free or not."),
            ("free", "Devices that are free for a request of a shape."),
            ("stranded", "Devices that are free, and of no use to one more claim of a shape."),
        ):
            yield Gauge(
                f"moorage_shape_{attribute}_devices",
                text,
                ("shape", "request"),
                partial(self._of_requests, attrgetter(attribute)),
            )

    def _of_requests(self, value: Callable[[RequestRoom], float | None]) -> Counts:
        found: Counts = {}
        for shape in self._look().shapes:
            for each in shape.requests[:REQUESTS_MAX]:
                number = value(each)
                if number is not None:
                    found[shape.shape, each.request] = number
        return found

    # --- pods and claims ----------------------------------------------------------------------

    def _pending(self) -> Counts:
        found: Counts = {}
        for each in self._look().waiting:
            key = (each.namespace, each.cause)
            found[key] = found.get(key, 0) + 1
        return folded(found, 0, self._limits.namespaces)

    def _oldest_pending(self) -> Counts:
        now, found = self._now(), Counts()
        for each in self._look().waiting:
            age_s = 0.0 if each.since is None else _age_s(now, each.since)
            found[each.cause,] = max(found.get((each.cause,), 0.0), age_s)
        return found

    def _of_claims(self) -> Iterator[Family]:
        yield Gauge(
            "moorage_claims",
            "ResourceClaims by state.",
            ("state",),
            lambda: {(str(state),): len(times) for state, times in self._claims()},
        )
        yield Gauge(
            "moorage_claims_by_age",
            "ResourceClaims that are no older than `le` seconds, by state: for "
            "histogram_quantile, without rate.",
            ("state", "le"),
            self._ages,
        )
        yield Gauge(
            "moorage_claims_oldest_seconds",
            "Age of the oldest ResourceClaim, by state; if it is being deleted, since then.",
            ("state",),
            lambda: {
                (str(state),): _age_s(self._now(), times[0])
                for state, times in self._claims()
                if times
            },
        )

    def _claims(self) -> Iterable[tuple[ClaimState, tuple[datetime, ...]]]:
        return self._look().claims.items()

    def _ages(self) -> Counts:
        now, found = self._now(), Counts()
        for state, times in self._claims():
            for age_s in AGES_S:
                older = bisect_right(times, now - timedelta(seconds=age_s))
                found[str(state), number_text(age_s)] = len(times) - older
            found[str(state), "+Inf"] = len(times)
        return found

    # --- limits -------------------------------------------------------------------------------

    def _folded(self) -> Counts:
        figures, limits = self._look(), self._limits
        nodes = {node for node, _ in figures.devices}
        drivers = {driver for _, driver in figures.devices}
        namespaces = {each.namespace for each in figures.waiting}
        return {
            ("node",): max(len(nodes) - limits.nodes, 0),
            ("driver",): max(len(drivers) - limits.drivers, 0),
            ("device_class",): max(len(figures.classes) - limits.classes, 0),
            ("namespace",): max(len(namespaces) - limits.namespaces, 0),
            ("shape",): figures.shapes_left_out,
        }


def folded(counts: Mapping[Labels, float], place: int, most: int) -> Counts:
    """Return counts in which at most this many values of one label keep their names."""
    values = {labels[place] for labels in counts}
    if len(values) <= most:
        return dict(counts)
    kept = set(sorted(values, key=natural_order)[:most])
    found: Counts = {}
    for labels, number in counts.items():
        name = labels[place] if labels[place] in kept else OTHER
        key = (*labels[:place], name, *labels[place + 1 :])
        found[key] = found.get(key, 0) + number
    return found


def _by_state(counts: StateCounts) -> Iterator[tuple[str, int]]:
    return ((str(state), counts.of(state)) for state in shown_states((counts,)))


def _age_s(now: datetime, since: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)
