"""What is counted of claims on this node, under the kubelet's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mooring.kit.metrics import (
    Counts,
    Durations,
    Family,
    Level,
    exponential_buckets_between,
    exposition,
)

BUCKETS_S = exponential_buckets_between(0.1, 40, 15)  # as far as a driver may take


class NodeMetrics:
    """The counts of this node's claims and drivers."""

    def __init__(self, in_use: Callable[[], Mapping[str, int]]) -> None:
        self.operations = Durations(
            "dra_operations_duration_seconds",
            "Seconds to prepare or unprepare all claims of a pod.",
            BUCKETS_S,
            ("operation_name", "is_error"),
        )
        self.calls = Durations(
            "dra_grpc_operations_duration_seconds",
            "Seconds of calls to drivers.",
            BUCKETS_S,
            ("driver_name", "method_name", "grpc_status_code"),
        )
        self.prepare_skips = Counts(
            "dra_node_prepare_skips_total",
            "Claims that a driver did not need to prepare.",
            ("driver_name",),
        )
        self.unprepare_skips = Counts(
            "dra_node_unprepare_skips_total",
            "Claims that a driver did not need to unprepare.",
            ("driver_name",),
        )
        self._in_use = Level(
            "dra_resource_claims_in_use",
            "Claims that are prepared, by driver and, as <any>, in all.",
            ("driver_name",),
            lambda: {(driver,): count for driver, count in in_use().items()},
        )

    def observe_call(self, driver: str, method: str, status: str, seconds: float) -> None:
        """Note how long a driver took."""
        self.calls.note(seconds, driver, method, status)

    def families(self) -> Iterator[Family]:
        """Give all metrics."""
        yield from (self.operations, self.calls, self.prepare_skips, self.unprepare_skips)
        yield self._in_use

    def text(self) -> str:
        """Return all of it as Prometheus reads it."""
        return exposition(self.families())
