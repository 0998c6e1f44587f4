"""The variable `authorizer` of expressions, which asks the server's authorizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.apiserver.auth.access import (
    Access,
    Allowed,
    Decision,
    PathAccess,
    ResourceAccess,
)
from moorage.apiserver.auth.users import User, service_account_groups, service_account_name
from moorage.apiserver.dynamic_admission.attributes import Attributes
from moorage.apiserver.verbs.selectors import required_fields
from moorage.apiserver.worker_threads import OnLoop
from moorage.cel.admission import REQUEST_AUTHORIZER
from moorage.cel.library import authz

Authorize = Callable[[Access], Decision]


class RequestReviewer:
    """Checks what one user may do; worker threads ask through the event loop."""

    def __init__(self, user: User, authorize: Authorize | None) -> None:
        self._user = user
        self._authorize = authorize  # None: the server allows everything

    def review_path(self, path: str, verb: str) -> authz.Decision:
        """Return whether the user may use a path."""
        return self._decide(PathAccess(self._user, verb, path))

    def review_resource(self, check: authz.ResourceCheck, verb: str) -> authz.Decision:
        """Return whether the user may use a resource; an invalid selector asks for everything."""
        access = ResourceAccess(
            self._user,
            verb,
            check.group,
            check.resource,
            check.subresource,
            check.namespace,
            check.name,
            required_fields(check.field_selector),
        )
        return self._decide(access)

    def of_service_account(self, namespace: str, name: str) -> RequestReviewer:
        """Return a reviewer for a service account."""
        account = User(service_account_name(namespace, name), service_account_groups(namespace))
        return RequestReviewer(account, self._authorize)

    def _decide(self, access: Access) -> authz.Decision:
        if self._authorize is None:
            return authz.Decision(allowed=True)
        decision = self._authorize(access)
        return authz.Decision(isinstance(decision, Allowed), decision.reason)


def authorizer_values(attributes: Attributes) -> dict[str, Any]:
    """Return the variables `authorizer` and `authorizer.requestResource` of a request."""
    cluster = attributes.server.authorizer
    authorize = None if cluster is None else OnLoop(cluster.authorizer.authorize)
    reviewer = RequestReviewer(attributes.user, authorize)
    endpoint = attributes.endpoint
    return {
        "authorizer": authz.Authorizer(reviewer),
        REQUEST_AUTHORIZER: authz.ResourceCheck(
            reviewer,
            endpoint.group,
            endpoint.resource,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
        ),
    }
