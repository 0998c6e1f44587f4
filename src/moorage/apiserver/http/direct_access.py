"""Access of clients in this process: the seat, the rights and the count of each request.

They authenticate once in a while; everything else is checked as for requests over HTTP.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from types import TracebackType

from moorage.apiserver.auth.access import (
    Access,
    Allowed,
    Authorizer,
    RequestAttributes,
    ResourceAccess,
    access_forbidden,
    access_of,
    attributes_of,
)
from moorage.apiserver.http.flow_control import FlowControl, request_class
from moorage.apiserver.http.messages import Target
from moorage.apiserver.http.metrics import Metrics, RequestLabels, direct_labels
from moorage.apiserver.http.status import StatusError, internal, of_store
from moorage.apiserver.verbs.dispatch import check_verb
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

NAMESPACES = "namespaces"
OF_MANY = frozenset(("list", "watch", "deletecollection"))
FAULT = "the server could not do it; its log says more"


class DirectAccess:
    """Admits requests of clients in this process."""

    def __init__(self, authorizer: Authorizer, flow: FlowControl, metrics: Metrics) -> None:
        self.flow = flow
        self.metrics = metrics
        self._authorizer = authorizer

    def admitted(self, request: ResourceRequest, verb: str) -> _Admitted:
        """Authorize a request and hold a seat in a block; count how it ends."""
        return _Admitted(self, request, verb)

    def check(self, request: ResourceRequest, verb: str) -> None:
        """Raise unless the user may do it and the resource supports it."""
        group, _, resource, namespace, name, part = request.target
        access: Access
        if verb in OF_MANY or resource == NAMESPACES:
            access = access_of(request.user, _attributes(request, verb))
        else:
            access = ResourceAccess(request.user, verb, group, resource, part, namespace, name)
        decision = self._authorizer.authorize(access)
        if not isinstance(decision, Allowed):
            raise access_forbidden(access, decision.reason)
        check_verb(request, verb)


class _Admitted:
    """A request that is under way, in a block."""

    __slots__ = ("_access", "_class", "_request", "_verb")

    def __init__(self, access: DirectAccess, request: ResourceRequest, verb: str) -> None:
        self._access, self._request, self._verb = access, request, verb
        self._class = request_class("", verb)

    def __enter__(self) -> None:
        request, flow = self._request, self._access.flow
        try:
            flow.take(request.user, self._class)
            try:
                self._access.check(request, self._verb)
            except BaseException:
                flow.leave(request.user, self._class)
                raise
        except Exception as error:
            self._end(error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._access.flow.leave(self._request.user, self._class)
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Count the request; raise what its client gets for an error of the store, or a fault."""
        code = 201 if self._verb == "create" else 200
        found: StatusError | None = None
        if isinstance(error, StatusError):
            code = error.status.code
        elif isinstance(error, StoreError):
            found = of_store(error)
            code = found.status.code
        elif isinstance(error, Exception):
            code = 500
            LOG.error("%s %s", self._verb, self._request.target, exc_info=error)
            found = internal(FAULT)
        self._access.metrics.requests.inc(*direct_labels_of(self._request, self._verb), str(code))
        if found is not None:
            raise found from None


def direct_labels_of(request: ResourceRequest, verb: str) -> RequestLabels:
    """Return the metric labels of a request."""
    group, version, resource, namespace, name, subresource = request.target
    where = (group, version, resource, bool(namespace), bool(name), subresource)
    return _labels(where, verb, request.content_type)


@lru_cache(maxsize=1024)
def _labels(
    where: tuple[str, str, str, bool, bool, str], verb: str, content_type: str
) -> RequestLabels:
    group, version, resource, has_namespace, has_name, subresource = where
    names = ("-" if has_namespace else "", "-" if has_name else "")
    return direct_labels(Target(group, version, resource, *names, subresource), verb, content_type)


def _attributes(request: ResourceRequest, verb: str) -> RequestAttributes:
    target = request.target
    if target.resource == NAMESPACES:
        target = target._replace(namespace=target.name)  # It counts as in itself.
    return attributes_of(verb, target, request.query)
