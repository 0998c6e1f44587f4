"""TokenRequest: issuing tokens for service accounts."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from moorage.api.authentication import GROUP, TokenRequest, TokenRequestStatus
from moorage.api.core import Node, Pod, Secret, ServiceAccount
from moorage.api.field_path import root
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.service_account_tokens import (
    BoundObjects,
    BoundReference,
    Issuer,
    Lookup,
    SigningKey,
    TokenClaims,
)
from moorage.apiserver.auth.users import service_account_name
from moorage.apiserver.http.status import About, bad_request, conflict, not_found
from moorage.apiserver.http.status import invalid as invalid_object
from moorage.validation.errors import ErrorList, invalid

EXPIRATION_MIN_S = 600
EXPIRATION_MAX_S = 1 << 32
EXPIRATION_DEFAULT_S = 3600

_REQUEST = About("tokenrequests", "TokenRequest", GROUP)


class TokenSigner(NamedTuple):
    """The key and the issuer of a server's tokens."""

    key: SigningKey
    issuer: Issuer
    seconds_max: int = 0  # the longest expiration; 0: no bound


class TokenObjects(NamedTuple):
    """The stored objects that a token request names."""

    account: ServiceAccount
    bound: Pod | Secret | Node | None = None
    node: Node | None = None  # the node of the pod


class IssuedToken(NamedTuple):
    """A request with its token, and warnings."""

    value: TokenRequest
    warnings: tuple[str, ...] = ()


def bound_lookup(request: TokenRequest, namespace: str) -> Lookup | None:
    """Return the key of the object that the token is bound to."""
    reference = request.spec.bound_object_ref
    if reference is None:
        return None
    group, slash, _ = reference.api_version.rpartition("/")
    match group if slash else "", reference.kind:
        case "", "Pod":
            return Lookup("pods", namespace, reference.name)
        case "", "Secret":
            return Lookup("secrets", namespace, reference.name)
        case "", "Node":
            return Lookup("nodes", "", reference.name)
    version = reference.api_version.rpartition("/")[2]
    shown = f"{group}/{version}, Kind={reference.kind}"
    raise bad_request(f"cannot bind token to object of type {shown}")


def issue(
    request: TokenRequest,
    objects: TokenObjects,
    *,
    key: SigningKey,
    issuer: Issuer,
    now: Timestamp,
    token_id: str,
    seconds_max: int = 0,
) -> IssuedToken:
    """Return a request with a token, or raise why there is none."""
    _check(request, objects)
    audiences = request.spec.audiences or issuer.audiences
    seconds, warnings = _seconds(request, seconds_max)
    account = objects.account.metadata
    start = int(now.instant.timestamp())
    claims = TokenClaims(
        aud=audiences,
        exp=start + seconds,
        iat=start,
        iss=issuer.name,
        jti=token_id,
        bound=_bound(objects),
        nbf=start,
        sub=service_account_name(account.namespace, account.name),
    )
    token = key.sign(msgspec.to_builtins(claims))
    expiry = now.truncated().after(seconds)
    metadata = _metadata(request, objects.account, now)
    spec = replace(request.spec, audiences=audiences, expiration_seconds=seconds)
    status = TokenRequestStatus(token=token, expiration_timestamp=expiry)
    return IssuedToken(replace(request, metadata=metadata, spec=spec, status=status), warnings)


def _seconds(request: TokenRequest, seconds_max: int) -> tuple[int, tuple[str, ...]]:
    """Return the expiration of the token, and a warning if it was shortened."""
    wanted = request.spec.expiration_seconds
    seconds = EXPIRATION_DEFAULT_S if wanted is None else wanted
    if not 0 < seconds_max < seconds:
        return seconds, ()
    warning = f"requested expiration of {seconds} seconds shortened to {seconds_max} seconds"
    return seconds_max, (warning,)


def _metadata(request: TokenRequest, account: ServiceAccount, now: Timestamp) -> ObjectMeta:
    return replace(
        request.metadata,
        name=account.metadata.name,
        namespace=account.metadata.namespace,
        uid=account.metadata.uid,
        creation_timestamp=now.truncated(),
    )


def _check(request: TokenRequest, objects: TokenObjects) -> None:
    account, given = objects.account.metadata, request.metadata
    if found := _name_errors(given, account):
        raise invalid_object(_REQUEST, account.name, found)
    if found := _expiration_errors(request.spec.expiration_seconds):
        raise invalid_object(_REQUEST, "", found)
    if given.uid and given.uid != account.uid:
        why = (
            f"the UID in the token request ({given.uid}) does not match the UID of the service "
            f"account ({account.uid})"
        )
        raise conflict(About("TokenRequest", "TokenRequest", GROUP), account.name, why)
    _check_bound(request, objects)


def _name_errors(given: ObjectMeta, account: ObjectMeta) -> ErrorList:
    pairs = (
        ("name", given.name, account.name),
        ("namespace", given.namespace, account.namespace),
    )
    return [
        invalid(
            root("metadata").child(field),
            value,
            f"must match the service account {field} if specified",
        )
        for field, value, wanted in pairs
        if value and value != wanted
    ]


def _expiration_errors(seconds: int | None) -> ErrorList:
    place = root("spec").child("expirationSeconds")
    if seconds is not None and seconds < EXPIRATION_MIN_S:
        return [invalid(place, seconds, "may not specify a duration less than 10 minutes")]
    if seconds is not None and seconds > EXPIRATION_MAX_S:
        return [invalid(place, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _check_bound(request: TokenRequest, objects: TokenObjects) -> None:
    reference, bound = request.spec.bound_object_ref, objects.bound
    if reference is None:
        return
    if bound is None:
        raise not_found(About(f"{reference.kind.lower()}s", reference.kind, ""), reference.name)
    name = objects.account.metadata.name
    if isinstance(bound, Pod) and bound.spec.service_account_name != name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{name}" to pod running with different '
            "serviceaccount name."
        )
    if reference.uid and reference.uid != bound.metadata.uid:
        why = (
            f"the UID in the bound object reference ({reference.uid}) does not match the UID in "
            "record. The object might have been deleted and then recreated"
        )
        raise conflict(About(reference.kind, reference.kind, ""), reference.name, why)


def _bound(objects: TokenObjects) -> BoundObjects:
    account = objects.account.metadata
    found = BoundObjects(namespace=account.namespace, serviceaccount=_reference(objects.account))
    match objects.bound:
        case Pod() as pod:
            return replace(found, pod=_reference(pod), node=_node(pod, objects.node))
        case Secret() as secret:
            return replace(found, secret=_reference(secret))
        case Node() as node:
            return replace(found, node=_reference(node))
    return found


def _node(pod: Pod, node: Node | None) -> BoundReference | None:
    """Return the node of a pod by name, even if there is no such object."""
    if not pod.spec.node_name:
        return None
    return BoundReference(pod.spec.node_name) if node is None else _reference(node)


def _reference(value: Any) -> BoundReference:
    return BoundReference(value.metadata.name, value.metadata.uid)
