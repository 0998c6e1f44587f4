"""serviceaccounts/token: a new token for an account, bound to an object or not."""

from __future__ import annotations

from typing import Any

from mooring.api.authentication import API_VERSION, TokenRequest
from mooring.api.codec import decode_tree
from mooring.api.core import Node, Pod
from mooring.api.errors import ApiError
from mooring.apiserver.authentication.tokenrequests import Issued, Objects, bound_lookup, issue
from mooring.apiserver.authorization.noderestriction import Operation
from mooring.apiserver.calls import Call, read_plain_tree
from mooring.apiserver.service import Service
from mooring.apiserver.status import bad_request, unknown_resource

KIND = "TokenRequest"


async def request_token(service: Service, call: Call) -> Issued:
    """Return a request with its token, or raise why there is none."""
    signing = service.signing
    if signing is None:
        raise unknown_resource()
    request = _read(call)
    namespace = call.target.namespace
    account = await service.registry.get(call.resource, namespace, call.target.name)
    bound = await _bound(service, request, namespace)
    pod = bound if isinstance(bound, Pod) else None
    await service.admit(call, Operation.CREATE, new=request, pod=pod)
    return issue(
        request,
        Objects(account, bound, await _node_of(service, pod)),
        key=signing.key,
        issuer=signing.issuer,
        now=service.now(),
        token_id=service.new_uid(),
        seconds_max=signing.seconds_max,
    )


def _read(call: Call) -> TokenRequest:
    tree = read_plain_tree(call, API_VERSION, KIND)
    version, kind = tree.get("apiVersion") or API_VERSION, tree.get("kind") or KIND
    if (version, kind) != (API_VERSION, KIND):
        raise bad_request(f"the body of the request must be a {KIND} of {API_VERSION}")
    try:
        return decode_tree({**tree, "apiVersion": version, "kind": kind}, TokenRequest).value
    except ApiError as error:
        raise bad_request(f"the {KIND} cannot be read: {error}") from None


async def _bound(service: Service, request: TokenRequest, namespace: str) -> Any | None:
    where = bound_lookup(request, namespace)
    if where is None:
        return None
    resource = service.resources.of("", where.plural)
    return await service.registry.find(resource, where.namespace, where.name)


async def _node_of(service: Service, pod: Pod | None) -> Node | None:
    if pod is None or not pod.spec.node_name:
        return None
    resource = service.resources.of("", "nodes")
    found: Node | None = await service.registry.find(resource, "", pod.spec.node_name)
    return found
