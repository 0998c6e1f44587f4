"""Request metrics, under Kubernetes' names."""

from __future__ import annotations

import collections
from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from moorage.apiserver.http.messages import Request, Target
from moorage.kit.bulkhead import FAULTS
from moorage.kit.metrics import Counter, Family, Gauge, Labels, exposition

APPLY_TYPE: Final = "application/apply-patch+yaml"
CONNECTS: Final = ("attach", "exec", "portforward", "proxy", "log")  # of pods
COMPONENT: Final = "apiserver"

_VERBS: Final = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}


class RequestLabels(NamedTuple):
    """The metric labels of a request, in Kubernetes' order."""

    verb: str
    dry_run: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    component: str = COMPONENT

    @property
    def without_dry_run(self) -> Labels:
        """The labels of long-running requests."""
        verb, _, *rest = self
        return verb, *rest


def request_labels(
    request: Request, verb: str, target: Target | None, parts: Container[str]
) -> RequestLabels:
    """Return the labels of a request; `parts` are the subresources that are served.

    Unknown resources get no label of their own: labels must stay bounded.
    """
    if target is None:
        return RequestLabels(_verb(request, verb, ""), _dry_run(request), "", "", "", "", "")
    resource = target.resource
    part = target.subresource if target.subresource in parts else ""
    return RequestLabels(
        _verb(request, verb, part),
        _dry_run(request),
        target.group,
        target.version,
        resource,
        part,
        _scope(target, verb),
    )


@lru_cache(maxsize=1024)
def direct_labels(target: Target, verb: str, content_type: str) -> RequestLabels:
    """Return the labels of a request from this process; its target has no object's names."""
    request = Request("", "", headers={"content-type": content_type})
    return request_labels(request, verb, target, (target.subresource,))


def _verb(request: Request, verb: str, part: str) -> str:
    if part in CONNECTS:
        return "CONNECT"
    if verb == "patch" and request.headers.get("content-type", "") == APPLY_TYPE:
        return "APPLY"
    return _VERBS.get(verb, "OTHER")


def _scope(target: Target, verb: str) -> str:
    if target.name or verb == "create":
        return "resource"
    return "namespace" if target.namespace else "cluster"


def _dry_run(request: Request) -> str:
    given = request.query.get("dryRun", "")
    return given if given in ("", "All") else "invalid"


class Metrics:
    """Counts of requests and of long-running requests."""

    def __init__(self) -> None:
        self.requests = Counter(
            "apiserver_request_total",
            "Requests by verb, dry run, group, version, resource, subresource, scope, component "
            "and HTTP code.",
            (*RequestLabels._fields, "code"),
        )
        self.watches = 0
        self.revision = 0
        self.sources: list[Callable[[], Iterable[Family]]] = []
        self._going_on: collections.Counter[Labels] = collections.Counter()
        self._long_running = Gauge(
            "apiserver_longrunning_requests",
            "Long-running requests, such as watches.",
            [label for label in RequestLabels._fields if label != "dry_run"],
            lambda: self._going_on,
        )
        self._revision = Gauge(
            "moorage_store_revision",
            "The newest revision of the store.",
            (),
            lambda: {(): self.revision},
        )

    def begun(self, asked: RequestLabels) -> Callable[[], None]:
        """Count a long-running request until the returned function is called."""
        labels = asked.without_dry_run
        self._going_on[labels] += 1

        def ended() -> None:
            self._going_on[labels] -= 1
            if not self._going_on[labels]:
                del self._going_on[labels]

        return ended

    def families(self) -> Iterator[Family]:
        """Yield all metrics, with those of other sources."""
        yield from (self.requests, self._long_running, self._revision, FAULTS.total)
        for source in self.sources:
            yield from source()

    def text(self, revision: int) -> str:
        """Return all metrics in the Prometheus format."""
        self.revision = revision
        return exposition(self.families())
