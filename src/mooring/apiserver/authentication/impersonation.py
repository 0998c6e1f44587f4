"""Users who act as others, as the Impersonate-… headers of a request ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mooring.api.authentication import GROUP
from mooring.apiserver.authentication.users import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    service_account_groups,
    service_account_of,
)
from mooring.apiserver.authorization.access import Authorizer, ResourceAccess, require
from mooring.apiserver.calls import User
from mooring.apiserver.status import bad_request

Headers = Sequence[tuple[str, str]]  # names in lower case, in the order of the request

PREFIX = "impersonate-"
USER, GROUPS, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA_PREFIX = "impersonate-extra-"
VALUES_MAX = 256

_ESCAPES = re.compile(rb"%([0-9a-f]{2})")


class Wish(NamedTuple):
    """Whom a request wants to act as."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()


def wish_of(headers: Headers) -> Wish | None:
    """Return whom the headers name; None if nobody. Raises if there is no user among them."""
    headers = tuple(header for header in headers if header[0].startswith(PREFIX))
    if not headers:
        return None
    name = next((value for key, value in headers if key == USER), "")
    groups = tuple(value for key, value in headers if key == GROUPS)
    uid = next((value for key, value in headers if key == UID), "")
    extra = tuple(
        (_unescaped(key.removeprefix(EXTRA_PREFIX).lower()), value)
        for key, value in headers
        if key.startswith(EXTRA_PREFIX)
    )
    if len(groups) + len(extra) > VALUES_MAX:
        raise bad_request(f"more than {VALUES_MAX} groups and extra values to impersonate")
    if not name:
        if groups or uid or extra:
            parts = [("Group", groups), ("UserExtra", extra), ("UID", (uid,) if uid else ())]
            asked = " ".join(kind for kind, values in parts if values)
            raise bad_request(f"requested [{asked}] without impersonating a user")
        return None
    return Wish(name, groups, uid, extra)


def accesses(user: User, wish: Wish) -> list[ResourceAccess]:
    """Return all that a user must be allowed to be."""
    account = service_account_of(wish.name)
    if account is None:
        found = [ResourceAccess(user, "impersonate", "", "users", name=wish.name)]
    else:
        found = [
            ResourceAccess(
                user,
                "impersonate",
                "",
                "serviceaccounts",
                namespace=account.namespace,
                name=account.name,
            )
        ]
    found += [ResourceAccess(user, "impersonate", "", "groups", name=g) for g in wish.groups]
    found += [
        ResourceAccess(user, "impersonate", GROUP, "userextras", key, name=value)
        for key, value in wish.extra
    ]
    if wish.uid:
        found.append(ResourceAccess(user, "impersonate", GROUP, "uids", name=wish.uid))
    return found


def impersonated(user: User, headers: Headers, authorizer: Authorizer) -> User:
    """Return the user that a request acts as, or raise that this is forbidden."""
    wish = wish_of(headers)
    if wish is None:
        return user
    for access in accesses(user, wish):
        require(authorizer, access)
    return _acting(wish)


def _acting(wish: Wish) -> User:
    groups = wish.groups
    account = service_account_of(wish.name)
    if account is not None and not groups:
        groups = service_account_groups(account.namespace)
    if wish.name == ANONYMOUS:
        if UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in wish.extra:
        extra[key] = (*extra.get(key, ()), value)
    return User(wish.name, groups, wish.uid, extra)


def _unescaped(key: str) -> str:
    """Return a key with its %-escapes read; one that is not well formed stays as it is."""
    if "%" in re.sub("%[0-9a-f]{2}", "", key):
        return key
    data = _ESCAPES.sub(lambda match: bytes([int(match[1], 16)]), key.encode())
    return data.decode(errors="replace")
