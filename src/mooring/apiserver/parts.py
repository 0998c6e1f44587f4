"""Subresources that are no part of an object but something done to it.

pods/binding         runs a pod on a node
pods/eviction        deletes a pod, if it may be
namespaces/finalize  lets go of a namespace
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mooring.api.codec import decode_tree
from mooring.api.core import Binding, Namespace, Pod
from mooring.api.core.podstatus import PodCondition
from mooring.api.errors import ApiError
from mooring.apiserver.authorization.noderestriction import Operation
from mooring.apiserver.calls import Call, read_body, read_plain_tree
from mooring.apiserver.deleting import checked_options, delete_object
from mooring.apiserver.resources import Resource
from mooring.apiserver.service import Service
from mooring.apiserver.status import Status, bad_request, conflict
from mooring.apiserver.writing import Written

DONE = Status(status="Success", code=201)

_ALREADY_BOUND = "pod {name} is already assigned to node {node!r}"
_GATED = "pod {name} has non-empty .spec.schedulingGates"
_GOING = "pod {name} is being deleted, cannot be assigned to a host"


async def bind(service: Service, call: Call) -> Status:
    """Have a pod run on a node."""
    try:
        tree = read_plain_tree(call, "v1", "Binding")
        binding = decode_tree(tree, Binding).value
    except ApiError as error:
        raise bad_request(f"the binding cannot be read: {error}") from None
    name = call.target.name or binding.metadata.name
    if binding.metadata.name and binding.metadata.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    node = binding.target.name
    if not node or binding.target.kind not in ("", "Node"):
        raise bad_request("target: must name a Node")
    pods = service.resources.of("", "pods")

    async def bound(pod: Pod) -> Pod:
        return _bound(pod, binding, pods, service)

    if not call.is_dry_run:
        await service.registry.change(pods, call.target.namespace, name, bound)
    return DONE


def _bound(pod: Pod, binding: Binding, pods: Resource, service: Service) -> Pod:
    metadata, wanted = pod.metadata, binding.metadata
    if wanted.uid and wanted.uid != metadata.uid:
        why = f"Precondition failed: UID in precondition: {wanted.uid}, UID in object meta: "
        raise conflict(pods.about, metadata.name, f"{why}{metadata.uid}")
    if metadata.deletion_timestamp is not None:
        raise conflict(pods.about, metadata.name, _GOING.format(name=metadata.name))
    if pod.spec.node_name:
        why = _ALREADY_BOUND.format(name=metadata.name, node=pod.spec.node_name)
        raise conflict(pods.about, metadata.name, why.replace("'", '"'))
    if pod.spec.scheduling_gates:
        raise conflict(pods.about, metadata.name, _GATED.format(name=metadata.name))
    scheduled = PodCondition(type="PodScheduled", status="True", last_transition_time=service.now())
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
            nominated_node_name="",  # What was meant before must not mislead anybody now.
        ),
    )


def _with_condition(
    conditions: tuple[PodCondition, ...], new: PodCondition
) -> tuple[PodCondition, ...]:
    """Return conditions with a new one, in the place of the old one of its type if there is one."""
    if all(each.type != new.type for each in conditions):
        return (*conditions, new)
    return tuple(new if each.type == new.type else each for each in conditions)


async def evict(service: Service, call: Call) -> Status:
    """Delete a pod; there are no budgets here that would speak against it."""
    tree = read_plain_tree(call, "policy/v1", "Eviction")
    options = checked_options(tree.get("deleteOptions") or {}, call.query)
    is_dry_run = call.is_dry_run or "All" in options.dry_run
    target = call.target

    async def admit(pod: Any) -> None:
        await service.admit(call, Operation.CREATE, pod=pod)

    await delete_object(
        service, call.resource, target.namespace, target.name, options, is_dry_run, admit
    )
    return DONE


async def finalize(service: Service, call: Call) -> Written:
    """Set what holds a namespace; one that nothing holds any longer is gone."""
    body = read_body(call, gates=service.gates, extensions=service.extensions)

    async def finalized(old: Namespace) -> Any:
        spec = replace(old.spec, finalizers=body.value.spec.finalizers)
        return replace(old, spec=spec)

    target = call.target
    if call.is_dry_run:
        return Written(await service.registry.get(call.resource, "", target.name))
    return Written(await service.registry.change(call.resource, "", target.name, finalized))
