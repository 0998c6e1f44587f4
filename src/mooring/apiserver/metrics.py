"""What a server counts, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """One count of somebody else."""

    name: str
    text: str
    type: str  # counter or gauge
    value: int
    labels: str = ""


class Metrics:
    """Counts of requests and watches."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, str, int]] = Counter()
        self.watches = 0
        self.sources: list[Callable[[], Iterable[Sample]]] = []

    def count(self, verb: str, group: str, resource: str, code: int) -> None:
        """Note an answered request."""
        self._requests[verb, group, resource, code] += 1

    def text(self, revision: int) -> str:
        """Return all counts."""
        lines = [
            "# HELP apiserver_request_total Requests by verb, group, resource and answer.",
            "# TYPE apiserver_request_total counter",
        ]
        for (verb, group, resource, code), count in sorted(self._requests.items()):
            labels = f'code="{code}",group="{group}",resource="{resource}",verb="{verb}"'
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        own = (
            Sample("apiserver_longrunning_requests", "Open watches.", "gauge", self.watches),
            Sample("mooring_store_revision", "The store's newest revision.", "gauge", revision),
        )
        told = ""
        for sample in (*own, *(sample for source in self.sources for sample in source())):
            name = sample.name
            if name != told:
                lines += [f"# HELP {name} {sample.text}", f"# TYPE {name} {sample.type}"]
                told = name
            labels = f"{{{sample.labels}}}" if sample.labels else ""
            lines.append(f"{name}{labels} {sample.value}")
        return "\n".join(lines) + "\n"
