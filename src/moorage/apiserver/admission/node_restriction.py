"""The NodeRestriction plugin: nodes write only their own node, slices, lease and pods."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from moorage.api.core import Node, Pod
from moorage.api.meta import OwnerReference
from moorage.api.resource.v1 import GROUP as RESOURCE_GROUP
from moorage.apiserver.auth.node_authorizer import (
    COORDINATION,
    NODE_LEASES,
    audiences_of,
    is_mirror,
    references_of,
)
from moorage.apiserver.auth.users import User, is_node, node_of
from moorage.apiserver.http.messages import Target
from moorage.kit.go_quote import go_quote

MIRROR = "kubernetes.io/config.mirror"
RESTRICTED = "node-restriction.kubernetes.io"

# Labels of kubernetes.io and k8s.io that a node may set on itself.
OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
OWN_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")


class Operation(StrEnum):
    """The operation of a write."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class AdmissionAttributes(Struct, frozen=True):
    """A write, with the stored objects that NodeRestriction needs."""

    operation: Operation
    target: Target
    new: Any = None
    old: Any = None
    pod: Pod | None = None  # of an eviction or a token request
    node: Node | None = None  # the node's own object


def refuse_node_write(user: User, change: AdmissionAttributes) -> str | None:
    """Return why a node may not write this; None if it may, or if the user is not a node."""
    if not is_node(user):
        return None
    node = node_of(user)
    if not node:
        return f"could not determine node from user {go_quote(user.name)}"
    match change.target.group, change.target.resource:
        case "", "pods":
            return _pods(node, change)
        case "", "nodes":
            return _nodes(node, change)
        case "", "serviceaccounts":
            return _tokens(node, change)
        case (group, "leases") if group == COORDINATION:
            return _leases(node, change)
        case (group, "resourceslices") if group == RESOURCE_GROUP:
            return _slices(node, change)
    return None


# --- pods -----------------------------------------------------------------------------------------


def _pods(node: str, change: AdmissionAttributes) -> str | None:
    operation = change.operation
    match change.target.subresource:
        case "":
            if operation is Operation.CREATE:
                return _mirror_pod(node, change.new, change.node)
            if operation is Operation.DELETE:
                return _own_pod(node, change.old, f"node {go_quote(node)} can only delete pods")
            return (
                f"unexpected operation {go_quote(operation)}, node {go_quote(node)} can only "
                "create and delete mirror pods"
            )
        case "status":
            if operation is not Operation.UPDATE:
                return f"unexpected operation {go_quote(operation)}"
            return _pod_status(node, change.new, change.old)
        case "eviction":
            if operation is not Operation.CREATE:
                return f"unexpected operation {operation}"
            return _own_pod(node, change.pod, f"node {node} can only evict pods")
        case other:
            return (
                f"unexpected pod subresource {go_quote(other)}, only 'status' and 'eviction' are "
                "allowed"
            )


def _own_pod(node: str, pod: Pod | None, rule: str) -> str | None:
    if pod is not None and pod.spec.node_name == node:
        return None
    return f"{rule} with spec.nodeName set to itself"


def _mirror_pod(node: str, pod: Pod, own: Node | None) -> str | None:
    who = f"node {go_quote(node)}"
    if not is_mirror(pod):
        return f"pod does not have {go_quote(MIRROR)} annotation, {who} can only create mirror pods"
    if pod.spec.node_name != node:
        return f"{who} can only create pods with spec.nodeName set to itself"
    owners = pod.metadata.owner_references
    if len(owners) > 1:
        return f"{who} can only create pods with a single owner reference set to itself"
    if not owners:
        return f"{who} can only create pods with an owner reference set to itself"
    if reason := _owner(node, owners[0], own):
        return reason
    for tie in references_of(pod):
        return f"{who} can not create pods that reference {tie.resource}"
    return None


def _owner(node: str, owner: OwnerReference, own: Node | None) -> str | None:
    who = f"node {go_quote(node)}"
    if (owner.api_version, owner.kind, owner.name) != ("v1", "Node", node):
        return f"{who} can only create pods with an owner reference set to itself"
    if not owner.controller:
        return f"{who} can only create pods with a controller owner reference set to itself"
    if owner.block_owner_deletion:
        return f"{who} must not set blockOwnerDeletion on an owner reference"
    uid = "" if own is None else own.metadata.uid
    if owner.uid != uid or not uid:
        return f"node {node} UID mismatch: expected {owner.uid} got {uid}"
    return None


def _pod_status(node: str, new: Pod, old: Pod) -> str | None:
    who = f"node {go_quote(node)}"
    if reason := _own_pod(node, old, f"{who} can only update pod status for pods"):
        return reason
    if new.metadata.labels != old.metadata.labels:
        return f"{who} cannot update labels through pod status"
    before, after = old.status, new.status
    if (after.resource_claim_statuses or ()) != (before.resource_claim_statuses or ()):
        return f"{who} cannot update resource claim statues"
    if after.extended_resource_claim_status != before.extended_resource_claim_status:
        return f"{who} cannot update extended resource claim status"
    if (after.node_allocatable_resource_claim_statuses or ()) != (
        before.node_allocatable_resource_claim_statuses or ()
    ):
        return f"{who} cannot update node allocatable resource claim statuses"
    return None


# --- nodes ----------------------------------------------------------------------------------------


def _nodes(node: str, change: AdmissionAttributes) -> str | None:
    who = f"node {go_quote(node)}"
    new: Node | None = change.new
    name = change.target.name or ("" if new is None else new.metadata.name)
    if name != node:
        return f"{who} is not allowed to modify node {go_quote(name)}"
    if change.operation is Operation.CREATE and new is not None:
        if new.spec.config_source is not None:
            return f"{who} is not allowed to create pods with a non-nil configSource"
        if labels := forbidden_labels(new.metadata.labels, {}):
            return f"{who} is not allowed to set the following labels: {', '.join(labels)}"
    if change.operation is Operation.UPDATE and new is not None:
        return _node_update(who, new, change.old)
    return None


def _node_update(who: str, new: Node, old: Node) -> str | None:
    source = new.spec.config_source
    if source is not None and source != old.spec.config_source:
        return f"{who} is not allowed to update configSource to a new non-nil configSource"
    if new.spec.taints != old.spec.taints:
        return f"{who} is not allowed to modify taints"
    if new.metadata.owner_references != old.metadata.owner_references:
        return f"{who} is not allowed to modify ownerReferences"
    if labels := forbidden_labels(new.metadata.labels, old.metadata.labels):
        return f"is not allowed to modify labels: {', '.join(labels)}"
    return None


def forbidden_labels(new: dict[str, str], old: dict[str, str]) -> list[str]:
    """Return the changed labels that no node may set on itself."""
    changed = (key for key in new.keys() | old.keys() if new.get(key) != old.get(key))
    return sorted(key for key in changed if not _is_own_label(key))


def _is_own_label(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    if not slash:
        return True
    if _is_within(domain, RESTRICTED):
        return False
    if not any(_is_within(domain, known) for known in KUBERNETES_DOMAINS):
        return True
    return key in OWN_LABELS or any(_is_within(domain, own) for own in OWN_LABEL_DOMAINS)


def _is_within(domain: str, wider: str) -> bool:
    return domain == wider or domain.endswith(f".{wider}")


# --- slices, leases, tokens -----------------------------------------------------------------------


def _slices(node: str, change: AdmissionAttributes) -> str | None:
    """Check objects that the node authorizer cannot see: new slices, and slices of a collection."""
    match change.operation:
        case Operation.CREATE if change.new.spec.node_name != node:
            return "can only create ResourceSlice with the same NodeName as the requesting node"
        case Operation.DELETE if change.old.spec.node_name != node:
            return "can only delete ResourceSlice with the same NodeName as the requesting node"
    return None


def _leases(node: str, change: AdmissionAttributes) -> str | None:
    if change.target.namespace != NODE_LEASES:
        return f"can only access leases in the {go_quote(NODE_LEASES)} system namespace"
    created = change.operation is Operation.CREATE
    name = change.new.metadata.name if created else change.target.name
    if name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _tokens(node: str, change: AdmissionAttributes) -> str | None:
    if change.operation is not Operation.CREATE or change.target.subresource != "token":
        return None
    bound = change.new.spec.bound_object_ref
    if bound is None or (bound.api_version, bound.kind) != ("v1", "Pod") or not bound.name:
        return "node requested token not bound to a pod"
    if not bound.uid:
        return "node requested token with a pod binding without a uid"
    pod = change.pod
    if pod is None:
        return f'pods "{bound.name}" not found'
    if bound.uid != pod.metadata.uid:
        return (
            f"the UID in the bound object reference ({bound.uid}) does not match the UID in "
            "record. The object might have been deleted and then recreated"
        )
    if pod.spec.node_name != node:
        return "node requested token bound to a pod scheduled on a different node"
    return _audience(node, change.new.spec.audiences or (), pod)


def _audience(node: str, audiences: tuple[str, ...], pod: Pod) -> str | None:
    if len(audiences) > 1:
        return "node may only request 0 or 1 audiences"
    audience = audiences[0] if audiences else ""
    if audience in audiences_of(pod):
        return None
    return (
        f"system:node:{node} is not authorized to request tokens for audience {go_quote(audience)}"
    )
