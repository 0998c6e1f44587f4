"""What a server counts, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of requests and watches."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, str, int]] = Counter()
        self.watches = 0
        self.in_flight = 0

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
        for name, text, value in (
            ("apiserver_current_inflight_requests", "Requests at work.", self.in_flight),
            ("apiserver_longrunning_requests", "Open watches.", self.watches),
            ("mooring_store_revision", "The newest revision of the store.", revision),
        ):
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"
