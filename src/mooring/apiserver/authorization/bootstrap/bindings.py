"""Who has which role from the start."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.rbac import GROUP, Subject
from mooring.apiserver.authentication.users import (
    AUTHENTICATED,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
)
from mooring.apiserver.authorization.access import MASTERS
from mooring.apiserver.authorization.bootstrap import controllers

SCHEDULER = "system:kube-scheduler"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SYSTEM = "kube-system"


class BindingRow(NamedTuple):
    """A role, and who has it; in a namespace it is a role of that namespace."""

    role: str
    subjects: tuple[Subject, ...]
    namespace: str = ""


def _user(name: str) -> Subject:
    return Subject(kind="User", api_group=GROUP, name=name)


def _group(name: str) -> Subject:
    return Subject(kind="Group", api_group=GROUP, name=name)


def _account(name: str) -> Subject:
    return Subject(kind="ServiceAccount", name=name, namespace=SYSTEM)


BINDINGS: tuple[BindingRow, ...] = (
    BindingRow("cluster-admin", (_group(MASTERS),)),
    BindingRow("system:basic-user", (_group(AUTHENTICATED),)),
    BindingRow("system:discovery", (_group(AUTHENTICATED),)),
    BindingRow("system:public-info-viewer", (_group(AUTHENTICATED), _group(UNAUTHENTICATED))),
    BindingRow("system:monitoring", (_group("system:monitoring"),)),
    BindingRow("system:service-account-issuer-discovery", (_group(SERVICE_ACCOUNTS),)),
    BindingRow("system:kube-scheduler", (_user(SCHEDULER),)),
    BindingRow("system:kube-controller-manager", (_user(CONTROLLER_MANAGER),)),
    BindingRow("system:node", ()),  # nodes have it through the node authorizer
)

CONTROLLER_BINDINGS: tuple[BindingRow, ...] = tuple(
    BindingRow(row.name, (_account(row.name.removeprefix(controllers.PREFIX)),))
    for row in controllers.ROLES
)

NAMESPACED: tuple[BindingRow, ...] = (
    BindingRow(
        "system::leader-locking-kube-controller-manager",
        (
            _user(CONTROLLER_MANAGER),
            _account("kube-controller-manager"),
            _account("leader-election-controller"),
        ),
        SYSTEM,
    ),
    BindingRow(
        "system::leader-locking-kube-scheduler",
        (_user(SCHEDULER), _account("kube-scheduler")),
        SYSTEM,
    ),
    BindingRow("system:controller:token-cleaner", (_account("token-cleaner"),), SYSTEM),
)
