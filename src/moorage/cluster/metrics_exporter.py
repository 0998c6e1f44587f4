"""The program of `moor metrics`: figures of a live cluster, computed in passes.

Ages are relative to the time of the scrape; everything else is from the last pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from moorage.client.contract import Client
from moorage.cluster.programs import ProgramContext, shared_informers
from moorage.cluster.snapshot_passes import INTERVAL_S, SnapshotPasses
from moorage.insight.explain.pods import DiagnosisTimeLimit
from moorage.insight.explain.trials import Effort
from moorage.insight.monitor import Figures, LabelLimits, Monitor, MonitorFamilies, Shape
from moorage.insight.monitor.monitor import SHAPE_CLAIMS_MAX, SHAPES_MAX
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import Clock
from moorage.kit.metrics import Family, Gauge, Labels, exposition, openmetrics_exposition
from moorage.validation.strategy import Context

CAUSE_S = 0.5  # for the search of one cause
CAUSES_S = 10.0  # for the search of all causes in a pass


class ExporterSettings(Struct, frozen=True):
    """The settings of `moor metrics`."""

    shapes: tuple[Shape, ...] = ()  # besides those of templates
    shapes_max: int = SHAPES_MAX
    claims_max: int = SHAPE_CLAIMS_MAX
    limits: LabelLimits = LabelLimits()
    interval_s: float = INTERVAL_S


def monitor_of(context: Context, settings: ExporterSettings, clock: Clock) -> Monitor:
    """Return a monitor with a time limit for each pass."""
    begun: list[DiagnosisTimeLimit] = []

    def effort() -> Effort:
        return begun[-1].effort()

    def limit() -> EvaluationLimit:
        # Each pass calls this once, first.
        begun[:] = [DiagnosisTimeLimit(clock.monotonic, each_s=CAUSE_S, all_s=CAUSES_S)]
        return EvaluationLimit(clock.monotonic)

    return Monitor(
        context,
        shapes=settings.shapes,
        shapes_max=settings.shapes_max,
        claims_max=settings.claims_max,
        effort=effort,
        limit=limit,
    )


class MetricsProgram:
    """The exporter."""

    def __init__(
        self,
        client: Client,
        around: ProgramContext,
        context: Context,
        settings: ExporterSettings | None = None,
    ) -> None:
        settings = settings or ExporterSettings()
        clock = around.clock
        self.informers = shared_informers(client, around)
        self._figures: Figures | None = None
        self._monitor = monitor_of(context, settings, clock)
        self._passes: SnapshotPasses[Figures] = SnapshotPasses(
            "metrics",
            self.informers,
            self._monitor.figures,
            self._take,
            gates=around.gates,
            clock=clock,
            interval_s=settings.interval_s,
        )
        self._families = MonitorFamilies(
            lambda: self._figures or Figures(), clock.now, settings.limits
        )

    async def run(self) -> None:
        """Compute figures until cancelled."""
        async with self.informers.running():
            await self._passes.run()

    @property
    def troubles(self) -> dict[str, str]:
        """Why there are no figures yet."""
        return {} if self._figures is not None else {"metrics": "the first pass is not done yet"}

    @property
    def metrics_pages(self) -> Mapping[str, Callable[[], str]]:
        """The metrics, by path."""
        return {"/metrics": lambda: exposition(self.families())}

    @property
    def openmetrics_pages(self) -> Mapping[str, Callable[[], str]]:
        """The same in the format of OpenMetrics."""
        return {"/metrics": lambda: openmetrics_exposition(self.families())}

    def families(self) -> Iterator[Family]:
        """Yield all metrics; before the first pass, only those of the exporter itself."""
        if self._figures is not None:
            yield from self._families.families()
        yield from exporter_families(self._passes)

    def _take(self, figures: Figures) -> None:
        self._figures = figures


def exporter_families(passes: SnapshotPasses[Any]) -> Sequence[Family]:
    """Return the metrics of the exporter itself."""

    def finished() -> dict[Labels, float]:
        moment: datetime | None = passes.finished
        return {} if moment is None else {(): moment.timestamp()}

    return (
        Gauge(
            "moorage_exporter_objects",
            "Objects that were read, by kind.",
            ("kind",),
            lambda: {(kind,): count for kind, count in passes.objects.items()},
        ),
        Gauge(
            "moorage_exporter_passes_total",
            "Passes over the cluster so far.",
            (),
            lambda: {(): passes.passes},
            is_counter=True,
        ),
        Gauge(
            "moorage_exporter_pass_seconds",
            "How long the last pass took.",
            (),
            lambda: {(): passes.took_s},
        ),
        Gauge(
            "moorage_exporter_last_pass_timestamp_seconds",
            "Time of the last successful pass, which all other figures are from.",
            (),
            finished,
        ),
        FAULTS.total,
    )
