"""Who may write which part of a claim's status.

Two subresources exist for rules only: `resourceclaims/binding` for allocation and reservations,
and `resourceclaims/driver`, named after a driver, for what drivers report. The verbs of the latter
say where: `associated-node:update` for claims on the node of the service account,
`arbitrary-node:update` for all.
"""

from __future__ import annotations

from mooring.api.names import dns1123_subdomain
from mooring.api.resource.v1 import GROUP
from mooring.apiserver.authentication.users import NODE_NAME, service_account_of
from mooring.apiserver.authorization.access import (
    Allowed,
    Authorizer,
    ResourceAccess,
    refusal,
)
from mooring.apiserver.calls import User
from mooring.validation.context import DriverRefusal

CLAIMS = "resourceclaims"
ASSOCIATED, ARBITRARY = "associated-node:", "arbitrary-node:"


class ClaimStatusAuthorizer:
    """Answers for one request that writes the status of a claim."""

    def __init__(self, authorizer: Authorizer, user: User, *, verb: str, namespace: str) -> None:
        self._authorizer = authorizer
        self._user = user
        self._verb = verb
        self._namespace = namespace

    def refuse_binding(self) -> str | None:
        """Say whether the user may set allocation and reservations: of all claims, or of none."""
        return self._refuse(ResourceAccess(self._user, self._verb, GROUP, CLAIMS, "binding"))

    def refuse_driver(self, driver: str, *, node: str | None) -> DriverRefusal | None:
        """Say whether the user may report for a driver on the node of the allocation."""
        verbs = tuple(f"{where}{self._verb}" for where in self._where(node))
        reasons = []
        for verb in verbs:
            reason = self._refuse(
                ResourceAccess(self._user, verb, GROUP, CLAIMS, "driver", self._namespace, driver)
            )
            if reason is None:
                return None
            reasons.append(reason)
        return DriverRefusal(verbs, reasons[0])

    def _where(self, node: str | None) -> tuple[str, ...]:
        return (ASSOCIATED, ARBITRARY) if is_associated(self._user, node) else (ARBITRARY,)

    def _refuse(self, access: ResourceAccess) -> str | None:
        decision = self._authorizer.authorize(access)
        if isinstance(decision, Allowed):
            return None
        return str(refusal(access, decision.reason))


def is_associated(user: User, node: str | None) -> bool:
    """Return whether a user is a service account whose token is bound to the node."""
    if not node or service_account_of(user.name) is None:
        return False
    bound = user.extra.get(NODE_NAME, ())
    return len(bound) == 1 and bound[0] == node and not dns1123_subdomain(node)
