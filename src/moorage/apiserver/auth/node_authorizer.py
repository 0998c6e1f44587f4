"""The node authorizer: a node may access only what the pods on it refer to.

`NodeGraph` caches pods and slices. `NodeAuthorizer` decides by it; NodeRestriction
(`admission.node_restriction`) checks the content of writes, which an authorizer cannot see.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moorage.api.core import PersistentVolume, Pod
from moorage.api.core.pod import MIRROR_POD_ANNOTATION
from moorage.api.rbac import PolicyRule
from moorage.api.resource.v1 import GROUP as RESOURCE_GROUP
from moorage.api.resource.v1 import ResourceSlice
from moorage.apiserver.auth.access import Access, Allowed, Decision, NoOpinion, ResourceAccess
from moorage.apiserver.auth.policy_rules import allows
from moorage.apiserver.auth.users import is_node, node_of
from moorage.claims.pod_claims import claims_to_release
from moorage.kit.go_quote import go_quote

NODE_LEASES = "kube-node-lease"
COORDINATION = "coordination.k8s.io"
SLICES = "resourceslices"


class NodeGraph:
    """Which node needs which objects, because of its pods and slices."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], tuple[str, frozenset[ObjectReference]]] = {}
        self._slices: dict[str, str] = {}
        self._volumes: dict[str, tuple[str, str]] = {}  # the claim of each bound volume
        self._needs: dict[tuple[str, ObjectReference], Counter[str]] = defaultdict(Counter)

    def put_pod(self, pod: Pod) -> None:
        """Add or update a pod; a pod without a node grants nothing."""
        namespace, name = pod.metadata.namespace, pod.metadata.name
        node = pod.spec.node_name
        if not node and (namespace, name) not in self._pods:
            return
        ties = references_with_self(pod)
        if self._pods.get((namespace, name)) == (node, ties):
            return
        self.remove_pod(namespace, name)
        if not node:
            return
        self._pods[namespace, name] = node, ties
        for tie in ties:
            self._needs[namespace, tie][node] += 1

    def remove_pod(self, namespace: str, name: str) -> None:
        """Remove a pod and what it granted its node."""
        node, ties = self._pods.pop((namespace, name), ("", frozenset()))
        for tie in ties:
            nodes = self._needs[namespace, tie]
            nodes[node] -= 1
            if nodes[node] <= 0:
                del nodes[node]
            if not nodes:
                del self._needs[namespace, tie]

    def put_slice(self, value: ResourceSlice) -> None:
        """Add or update a slice."""
        self._slices[value.metadata.name] = value.spec.node_name or ""

    def remove_slice(self, name: str) -> None:
        """Remove a slice."""
        self._slices.pop(name, None)

    def put_volume(self, value: PersistentVolume) -> None:
        """Add or update a volume; one without a claim grants nothing."""
        claim = value.spec.claim_ref
        if claim is None:
            self.remove_volume(value.metadata.name)
        else:
            self._volumes[value.metadata.name] = claim.namespace, claim.name

    def remove_volume(self, name: str) -> None:
        """Remove a volume."""
        self._volumes.pop(name, None)

    def needs(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Return whether a node needs an object."""
        if resource == SLICES:
            return bool(node) and self._slices.get(name) == node
        if resource == VOLUMES:
            namespace, name = self._volumes.get(name, ("", ""))
            resource = VOLUME_CLAIMS
        nodes = self._needs.get((namespace, ObjectReference(resource, name)))
        return nodes is not None and node in nodes


class NodeAuthorizer:
    """Decides for nodes; has no opinion on other users."""

    def __init__(self, ties: NodeGraph, rules: Sequence[PolicyRule]) -> None:
        self._ties = ties
        self._rules = rules

    def authorize(self, access: Access) -> Decision:
        """Return the decision on a node's access."""
        if not is_node(access.user):
            return NoOpinion()
        node = node_of(access.user)
        if not node:
            return NoOpinion(f"unknown node for user {go_quote(access.user.name)}")
        if isinstance(access, ResourceAccess):
            match access.group, access.resource:
                case "", "secrets" | "configmaps":
                    return self._read(node, access)
                case "", "persistentvolumeclaims":
                    return self._volume_claim(node, access)
                case "", "persistentvolumes":
                    return self._get(node, access)
                case (group, "resourceclaims") if group == RESOURCE_GROUP:
                    return self._get(node, access)
                case (group, "resourceslices") if group == RESOURCE_GROUP:
                    return self._slice(node, access)
                case "", "serviceaccounts":
                    return self._service_account(node, access)
                case (group, "leases") if group == COORDINATION:
                    return _lease(node, access)
                case "", "nodes":
                    return _node(node, access)
                case "", "pods":
                    return self._pod(node, access)
        return Allowed() if any(allows(rule, access) for rule in self._rules) else NoOpinion()

    def _needed(self, node: str, access: ResourceAccess) -> Decision:
        if not access.name:
            return NoOpinion("No Object name found")
        if self._ties.needs(node, access.resource, access.namespace, access.name):
            return Allowed()
        return NoOpinion(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, access: ResourceAccess) -> Decision:
        if access.verb != "get":
            return NoOpinion("can only get individual resources of this type")
        if access.subresource:
            return NoOpinion("cannot get subresource")
        return self._needed(node, access)

    def _read(self, node: str, access: ResourceAccess) -> Decision:
        if access.verb not in ("get", "list", "watch"):
            return NoOpinion("can only read resources of this type")
        if access.subresource:
            return NoOpinion("cannot read subresource")
        if not access.namespace:
            return NoOpinion("can only read namespaced object of this type")
        return self._needed(node, access)

    def _service_account(self, node: str, access: ResourceAccess) -> Decision:
        if access.verb == "get" and not access.subresource:
            return self._read(node, access)
        if access.verb != "create" or not access.name:
            return NoOpinion("can only create tokens for individual service accounts")
        if access.subresource != "token":
            return NoOpinion("can only create token subresource of serviceaccount")
        return self._needed(node, access)

    def _volume_claim(self, node: str, access: ResourceAccess) -> Decision:
        if access.subresource != "status":
            return self._get(node, access)
        if access.verb not in ("update", "patch"):
            return NoOpinion("can only get/update/patch this type")
        return self._needed(node, access)

    def _slice(self, node: str, access: ResourceAccess) -> Decision:
        if access.subresource:
            return NoOpinion("cannot authorize ResourceSlice subresources")
        match access.verb:
            case "create":
                return Allowed()  # NodeRestriction checks its nodeName
            case "get" | "update" | "patch" | "delete":
                return self._needed(node, access)
            case "watch" | "list" | "deletecollection":
                if access.fields.get("spec.nodeName") == node:
                    return Allowed()
                return NoOpinion(
                    "can only list/watch/deletecollection resourceslices with nodeName field "
                    "selector"
                )
        return NoOpinion(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, "
            "update, patch, delete, deletecollection"
        )

    def _pod(self, node: str, access: ResourceAccess) -> Decision:
        match access.subresource, access.verb:
            case "", "get":
                return self._get(node, access)
            case "", "list" | "watch":
                if access.fields.get("spec.nodeName") == node:
                    return Allowed()
                if access.name:
                    return self._needed(node, access)
                return NoOpinion("can only list/watch pods with spec.nodeName field selector")
            case (
                ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create")
            ):
                return Allowed()  # NodeRestriction checks the pod's node
        return NoOpinion()


def _lease(node: str, access: ResourceAccess) -> Decision:
    if access.verb not in ("get", "create", "update", "patch", "delete"):
        return NoOpinion("can only get, create, update, patch, or delete a node lease")
    if access.namespace != NODE_LEASES:
        return NoOpinion(f"can only access leases in the {go_quote(NODE_LEASES)} system namespace")
    if access.verb != "create" and access.name != node:
        return NoOpinion("can only access node lease with the same name as the requesting node")
    return Allowed()


def _node(node: str, access: ResourceAccess) -> Decision:
    match access.subresource, access.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return Allowed()  # NodeRestriction checks which node it is
        case "", "get" | "list" | "watch":
            if access.name == node:
                return Allowed()
            if not access.name:
                return NoOpinion(f"node '{node}' cannot read all nodes, only its own Node object")
            return NoOpinion(f"node '{node}' cannot read '{access.name}', only its own Node object")
    return NoOpinion()


# --- references of pods ---------------------------------------------------------------------------

SECRETS, CONFIG_MAPS = "secrets", "configmaps"
CLAIMS, SERVICE_ACCOUNTS, PODS = "resourceclaims", "serviceaccounts", "pods"
VOLUME_CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"


class ObjectReference(NamedTuple):
    """An object that a pod refers to, in its namespace."""

    resource: str
    name: str


# Paths of names by their first field, so that only fields that are set are visited.
Places = Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]

_IN_VOLUMES: Places = {
    "secret": ((SECRETS, ("secretName",)),),
    "azureFile": ((SECRETS, ("secretName",)),),
    "cephfs": ((SECRETS, ("secretRef", "name")),),
    "cinder": ((SECRETS, ("secretRef", "name")),),
    "flexVolume": ((SECRETS, ("secretRef", "name")),),
    "rbd": ((SECRETS, ("secretRef", "name")),),
    "scaleIO": ((SECRETS, ("secretRef", "name")),),
    "iscsi": ((SECRETS, ("secretRef", "name")),),
    "storageos": ((SECRETS, ("secretRef", "name")),),
    "csi": ((SECRETS, ("nodePublishSecretRef", "name")),),
    "configMap": ((CONFIG_MAPS, ("name",)),),
    "persistentVolumeClaim": ((VOLUME_CLAIMS, ("claimName",)),),
}
_IN_PROJECTIONS: Places = {
    "secret": ((SECRETS, ("name",)),),
    "configMap": ((CONFIG_MAPS, ("name",)),),
}
_IN_ENVIRONMENTS: Places = {
    "secretRef": ((SECRETS, ("name",)),),
    "configMapRef": ((CONFIG_MAPS, ("name",)),),
    "valueFrom": (
        (SECRETS, ("secretKeyRef", "name")),
        (CONFIG_MAPS, ("configMapKeyRef", "name")),
    ),
}


def is_mirror(pod: Pod) -> bool:
    """Return whether a pod is a mirror pod, which shows a static pod of its node."""
    return MIRROR_POD_ANNOTATION in pod.metadata.annotations


def references_with_self(pod: Pod) -> frozenset[ObjectReference]:
    """Return the pod and the objects that it refers to; of a mirror pod, the pod only."""
    own = ObjectReference(PODS, pod.metadata.name)
    if is_mirror(pod):
        return frozenset({own})
    return frozenset({own, *references_of(pod)})


def references_of(pod: Pod) -> Iterator[ObjectReference]:
    """Yield the objects that a pod refers to."""
    spec = pod.spec
    if spec.service_account_name:
        yield ObjectReference(SERVICE_ACCOUNTS, spec.service_account_name)
    for secret in spec.image_pull_secrets:
        if secret.name:
            yield ObjectReference(SECRETS, secret.name)
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        for source in (*container.env_from, *container.env):
            yield from _named_in(source, _IN_ENVIRONMENTS)
    for volume in spec.volumes:
        yield from _named_in(volume, _IN_VOLUMES)
        if _at(volume, ("ephemeral", "volumeClaimTemplate")) is not None:
            yield ObjectReference(VOLUME_CLAIMS, f"{pod.metadata.name}-{_at(volume, ('name',))}")
        for source in _list(_at(volume, ("projected", "sources"))):
            yield from _named_in(source, _IN_PROJECTIONS)
    for name in claims_to_release(pod):
        if name:
            yield ObjectReference(CLAIMS, name)


def audiences_of(pod: Pod) -> set[str]:
    """Return the audiences of the tokens in a pod's volumes; "" is the API server."""
    found = set()
    for volume in pod.spec.volumes:
        for source in _list(_at(volume, ("projected", "sources"))):
            token = _at(source, ("serviceAccountToken",))
            if isinstance(token, dict):
                audience = token.get("audience", "")
                found.add(audience if isinstance(audience, str) else "")
    return found


def _named_in(tree: Any, places: Places) -> Iterator[ObjectReference]:
    if not isinstance(tree, dict):
        return
    for field, value in tree.items():
        for resource, path in places.get(field, ()):
            name = _at(value, path)
            if isinstance(name, str) and name:
                yield ObjectReference(resource, name)


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path; None if the tree does not have it."""
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(step)
    return tree


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
