"""Subresources that act on an object, and the scale of workloads.

pods/binding             assigns a pod to a node
pods/eviction            deletes a pod, if its disruption budget allows that
namespaces/finalize      sets the finalizers of a namespace
serviceaccounts/token    issues a token for an account, bound to an object or not
*/scale                  reads and writes the number of replicas; its writer manages that field
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api.apps import SCALE, Scale, ScaleSpec, ScaleStatus
from moorage.api.authentication import API_VERSION, TokenRequest
from moorage.api.catalogue import from_hub
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Binding, Namespace, Node, Pod
from moorage.api.core.pod import PodCondition
from moorage.api.custom_resource import CustomResource
from moorage.api.errors import ApiError
from moorage.api.field_path import root
from moorage.api.go_types import go_words
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.apiserver.admission.chain import strategy_context
from moorage.apiserver.admission.node_restriction import Operation
from moorage.apiserver.admission.write_access import admit_write
from moorage.apiserver.auth.token_requests import IssuedToken, TokenObjects, bound_lookup, issue
from moorage.apiserver.custom_resources.fields import custom_scale, with_replicas
from moorage.apiserver.custom_resources.requests import strategy_lane
from moorage.apiserver.dynamic_admission.plugin import admit_part
from moorage.apiserver.http.messages import Target
from moorage.apiserver.http.status import (
    MODIFIED,
    About,
    Status,
    bad_request,
    conflict,
    invalid,
    unknown_resource,
)
from moorage.apiserver.patching import apply_patch
from moorage.apiserver.resources import Resource
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.storage.registry import with_revision
from moorage.apiserver.tables.columns import plain_selector_text
from moorage.apiserver.verbs.delete import checked_options, delete_object
from moorage.apiserver.verbs.eviction import charge_budget, mark_evicted
from moorage.apiserver.verbs.managed_fields import with_owners, with_updated_owners
from moorage.apiserver.verbs.patch import as_fault_of_patch, may_read_object, patched_tree
from moorage.apiserver.verbs.resource_request import (
    ResourceRequest,
    check_plain_size,
    read_plain_tree,
)
from moorage.apiserver.verbs.write import WrittenObject, check_name, read_object
from moorage.validation.errors import invalid as invalid_value
from moorage.validation.registry import WRONG_NAMESPACE, before_update

DONE = Status(status="Success", code=201)
SCALE_SUBRESOURCE = "scale"
TOKEN_REQUEST = "TokenRequest"  # noqa: S105  # a kind

_ALREADY_BOUND = "pod {name} is already assigned to node {node!r}"
_GATED = "pod {name} has non-empty .spec.schedulingGates"
_DELETED = "pod {name} is being deleted, cannot be assigned to a host"
_SCALE = About("scales", "Scale", "autoscaling")
_EVICTION = About("evictions", "Eviction", "policy")
_UNSAFE = root("deleteOptions").child("ignoreStoreReadErrorWithClusterBreakingPotential")
_NOT_UNSAFE = "can not be set for pod eviction, try after removing the option"
_NEGATIVE = "must be greater than or equal to 0"


async def bind(server: ServerContext, request: ResourceRequest) -> Status:
    """Assign a pod to a node."""
    try:
        tree = read_plain_tree(request, "v1", "Binding")
        binding = decode_tree(tree, Binding).value
    except ApiError as error:
        raise bad_request(f"the binding cannot be read: {error}") from None
    name = request.target.name or binding.metadata.name
    if binding.metadata.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    node = binding.target.name
    if not node or binding.target.kind not in ("", "Node"):
        raise bad_request("target: must name a Node")
    pods = server.resources.of("", "pods")
    await admit_part(server, request, Operation.CREATE, binding)

    async def bound(pod: Pod) -> Pod:
        return _bound(pod, binding, pods, server)

    if not request.is_dry_run:
        await server.registry.change(pods, request.target.namespace, name, bound)
    return DONE


def _bound(pod: Pod, binding: Binding, pods: Resource, server: ServerContext) -> Pod:
    metadata, wanted = pod.metadata, binding.metadata
    if wanted.uid and wanted.uid != metadata.uid:
        why = f"Precondition failed: UID in precondition: {wanted.uid}, UID in object meta: "
        raise conflict(pods.about, metadata.name, f"{why}{metadata.uid}")
    if metadata.deletion_timestamp is not None:
        raise conflict(pods.about, metadata.name, _DELETED.format(name=metadata.name))
    if pod.spec.node_name:
        why = _ALREADY_BOUND.format(name=metadata.name, node=pod.spec.node_name)
        raise conflict(pods.about, metadata.name, why.replace("'", '"'))
    if pod.spec.scheduling_gates:
        raise conflict(pods.about, metadata.name, _GATED.format(name=metadata.name))
    scheduled = PodCondition(type="PodScheduled", status="True", last_transition_time=server.now())
    return replace(
        pod,
        metadata=replace(
            metadata,
            labels={**metadata.labels, **wanted.labels},
            annotations={**metadata.annotations, **wanted.annotations},
        ),
        spec=replace(pod.spec, node_name=binding.target.name),
        status=replace(
            pod.status,
            conditions=_with_condition(pod.status.conditions, scheduled),
            nominated_node_name="",  # A nomination must not outlive the assignment.
        ),
    )


def _with_condition(
    conditions: tuple[PodCondition, ...], new: PodCondition
) -> tuple[PodCondition, ...]:
    """Return conditions with a new one, which replaces the old one of its type."""
    if all(each.type != new.type for each in conditions):
        return (*conditions, new)
    return tuple(new if each.type == new.type else each for each in conditions)


async def evict(server: ServerContext, request: ResourceRequest) -> Status:
    """Delete a pod; the body names it again."""
    target = request.target
    tree = read_plain_tree(request, "policy/v1", "Eviction")
    _check_named(tree, target)
    if tree.get("kind") not in (None, "", "Eviction"):
        raise bad_request("the body of the request must be one Eviction")
    options = checked_options(tree.get("deleteOptions") or {})
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        raise invalid(_EVICTION, target.name, [invalid_value(_UNSAFE, True, _NOT_UNSAFE)])
    is_dry_run = request.is_dry_run or "All" in options.dry_run
    await admit_part(server, request, Operation.CREATE, tree)
    pod = await server.registry.get(request.resource, target.namespace, target.name)
    await _admit_eviction(server, request, pod)
    await charge_budget(server, pod, is_dry_run=is_dry_run)
    if not is_dry_run and not options.preconditions:
        await mark_evicted(server, pod)
    admit = partial(_admit_eviction, server, request)
    await delete_object(
        server, request.resource, target.namespace, target.name, options, is_dry_run, admit
    )
    return DONE


def _check_named(tree: Mapping[str, Any], target: Target) -> None:
    """Raise unless an eviction is for the pod of its URL."""
    metadata = tree.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    if named.get("namespace") not in (None, "", target.namespace):
        raise bad_request(WRONG_NAMESPACE)
    if named.get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")


async def _admit_eviction(server: ServerContext, request: ResourceRequest, pod: Pod) -> None:
    await admit_write(server, request, Operation.CREATE, pod=pod)


async def finalize(server: ServerContext, request: ResourceRequest) -> WrittenObject:
    """Set the finalizers of a namespace; without any, a deleted namespace is gone."""
    body = await read_object(server, request)

    async def finalized(old: Namespace) -> Any:
        new = replace(old, spec=replace(old.spec, finalizers=body.value.spec.finalizers))
        await admit_part(server, request, Operation.UPDATE, new, old)
        return new

    target = request.target
    if request.is_dry_run:
        return WrittenObject(await server.registry.get(request.resource, "", target.name))
    return WrittenObject(await server.registry.change(request.resource, "", target.name, finalized))


# --- tokens ---------------------------------------------------------------------------------------


async def request_token(server: ServerContext, request: ResourceRequest) -> IssuedToken:
    """Return a TokenRequest with its token, or raise why there is none."""
    signing = server.signing
    if signing is None:
        raise unknown_resource()
    token_request = _read_token_request(request)
    namespace = request.target.namespace
    account = await server.registry.get(request.resource, namespace, request.target.name)
    bound = await _bound_object(server, token_request, namespace)
    pod = bound if isinstance(bound, Pod) else None
    await admit_write(server, request, Operation.CREATE, new=token_request, pod=pod)
    await admit_part(server, request, Operation.CREATE, token_request)
    return issue(
        token_request,
        TokenObjects(account, bound, await _node_of(server, pod)),
        key=signing.key,
        issuer=signing.issuer,
        now=server.now(),
        token_id=server.new_uid(),
        seconds_max=signing.seconds_max,
    )


def _read_token_request(request: ResourceRequest) -> TokenRequest:
    tree = read_plain_tree(request, API_VERSION, TOKEN_REQUEST)
    version, kind = tree.get("apiVersion") or API_VERSION, tree.get("kind") or TOKEN_REQUEST
    if (version, kind) != (API_VERSION, TOKEN_REQUEST):
        raise bad_request(f"the body of the request must be a {TOKEN_REQUEST} of {API_VERSION}")
    try:
        return decode_tree({**tree, "apiVersion": version, "kind": kind}, TokenRequest).value
    except ApiError as error:
        raise bad_request(f"the {TOKEN_REQUEST} cannot be read: {error}") from None


async def _bound_object(
    server: ServerContext, token_request: TokenRequest, namespace: str
) -> Any | None:
    where = bound_lookup(token_request, namespace)
    if where is None:
        return None
    resource = server.resources.of("", where.plural)
    return await server.registry.find(resource, where.namespace, where.name)


async def _node_of(server: ServerContext, pod: Pod | None) -> Node | None:
    if pod is None or not pod.spec.node_name:
        return None
    resource = server.resources.of("", "nodes")
    found: Node | None = await server.registry.find(resource, "", pod.spec.node_name)
    return found


# --- scale ----------------------------------------------------------------------------------------


def scale_of(value: Any) -> Scale:
    """Return the scale of a workload."""
    metadata = value.metadata
    return Scale(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            creation_timestamp=metadata.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=value.spec.replicas or 0),
        status=ScaleStatus(
            replicas=value.status.replicas,
            selector=_scale_selector(value.spec.selector),
        ),
    )


def _scale_selector(selector: LabelSelector | dict[str, str] | None) -> str:
    """Return which pods are counted; a ReplicationController has labels only."""
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    return plain_selector_text(selector) or ""


async def read_scale(server: ServerContext, request: ResourceRequest) -> Scale:
    """Return the scale of a stored workload."""
    target = request.target
    value = await server.registry.get(request.resource, target.namespace, target.name)
    return _scale_for(request, value)


def _scale_for(request: ResourceRequest, value: Any, missing: int | None = None) -> Scale:
    if isinstance(value, CustomResource):
        return custom_scale(from_hub(value, request.kind.api_version), request.kind, missing)
    return scale_of(value)


async def write_scale(server: ServerContext, request: ResourceRequest, *, is_patch: bool) -> Scale:
    """Set the number of replicas of a workload from a body or a patch."""
    target, registry = request.target, server.registry

    may_read = may_read_object(server, request)

    async def scaled(old: Any) -> Any:
        current = _scale_for(request, old, 0)  # A write may set the first number of replicas.
        wanted = _wanted(request, current, may_read, is_patch=is_patch)
        version = wanted.metadata.resource_version
        if version and version != old.metadata.resource_version:
            raise conflict(request.resource.about, target.name, MODIFIED)
        await admit_part(server, request, Operation.UPDATE, wanted, current)
        if isinstance(old, CustomResource):
            new = await _with_custom_replicas(server, request, old, wanted.spec.replicas)
        else:
            new = _with_replicas(old, wanted.spec.replicas)
        await admit_write(server, request, Operation.UPDATE, new=new, old=old)
        owned = with_updated_owners(old, new, request, server.now())
        return _without_time_of_scale(owned) if isinstance(old, CustomResource) else owned

    if request.is_dry_run:
        old = await registry.get(request.resource, target.namespace, target.name)
        new = with_revision(await scaled(old), int(old.metadata.resource_version))
    else:
        new = await registry.change(request.resource, target.namespace, target.name, scaled)
    return _scale_for(request, new)


def _without_time_of_scale(value: Any) -> Any:
    """Return a custom resource whose manager of /scale has no time, and so comes first."""
    entries = value.metadata.managed_fields
    scales = tuple(replace(each, time=None) for each in entries if each.subresource == "scale")
    others = tuple(each for each in entries if each.subresource != "scale")
    return with_owners(value, (*scales, *others))


async def _with_custom_replicas(
    server: ServerContext, request: ResourceRequest, old: CustomResource, replicas: int
) -> Any:
    """Return a custom resource with a number of replicas that its schema allows, or raise."""
    kind = request.kind
    wanted = with_replicas(from_hub(old, kind.api_version), kind, replicas)
    context = strategy_context(server, request, None, verb="update")
    run, size = strategy_lane(server.workers, request, server.registry.size_of(old))
    found = await run(request.user.name, size, before_update, wanted, old, kind, context)
    if found.errors:
        raise invalid(request.resource.about, old.metadata.name, found.errors)
    return found.stored


def _wanted(
    request: ResourceRequest, current: Scale, may_read: Callable[[], bool], *, is_patch: bool
) -> Scale:
    """Return the scale that a request asks for, or raise why it is invalid."""
    if is_patch:
        check_plain_size(request)
        media = request.content_type.partition(";")[0].strip()
        tree = patched_tree(apply_patch(SCALE, media, request.body, to_tree(current)))
        with as_fault_of_patch(tree, request.body, media, may_read):
            wanted = _read_scale_tree(tree)
    else:
        wanted = _read_scale_tree(read_plain_tree(request, SCALE.api_version, SCALE.name))
    check_name(wanted, request)
    name, replicas = wanted.metadata.name, wanted.spec.replicas
    if replicas < 0:
        error = invalid_value(root("spec.replicas"), replicas, _NEGATIVE)
        raise invalid(_SCALE, name, [error])
    return wanted


def _read_scale_tree(tree: Any) -> Scale:
    try:
        return decode_tree(tree, Scale).value
    except ApiError as fault:
        words = go_words(tree, SCALE.api_version, SCALE.name) or str(fault)
        raise bad_request(words) from None


def _with_replicas(old: Any, replicas: int) -> Any:
    if old.spec.replicas == replicas:
        return old
    metadata = replace(old.metadata, generation=old.metadata.generation + 1)
    return replace(old, metadata=metadata, spec=replace(old.spec, replicas=replicas))
