"""The users of the security tests, and a cluster in which they have their roles."""

from __future__ import annotations

from typing import NamedTuple

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.core.namespace import ObjectReference
from moorage.api.core.persistent_volume import PersistentVolume, PersistentVolumeSpec
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import (
    GROUP,
    ClusterRoleBinding,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.api.resource.v1 import ResourceSlice, ResourceSliceSpec
from moorage.apiserver.auth.access import PrivilegedGroup, UnionAuthorizer
from moorage.apiserver.auth.bootstrap_policy import bootstrap_objects, node_rules
from moorage.apiserver.auth.node_authorizer import NodeAuthorizer, NodeGraph
from moorage.apiserver.auth.rbac import RBACPolicy
from moorage.apiserver.auth.users import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE_NAME,
    NODES,
    User,
    authenticated,
    service_account_groups,
)

TEAM = "team"
GATES = Gates.parse()

NODE = User("system:node:node-a", (NODES, AUTHENTICATED))
DRIVER = authenticated(
    User(
        "system:serviceaccount:drivers:gpu",
        service_account_groups("drivers"),
        extra={NODE_NAME: ("node-a",)},
    )
)
MASTER = User("root", ("system:masters", AUTHENTICATED))


def known(name: str) -> User:
    return User(name, (AUTHENTICATED,))


USERS = {
    "anonymous": ANONYMOUS,
    "authenticated": known("somebody"),
    "view": known("viewer"),
    "edit": known("editor"),
    "admin": known("team-admin"),
    "node": NODE,
    "driver": DRIVER,
    "scheduler": known("system:kube-scheduler"),
    "cluster-admin": known("boss"),
}


class Cluster(NamedTuple):
    """What decides in the tests."""

    policy: RBACPolicy
    ties: NodeGraph
    authorizer: UnionAuthorizer


def binding(role: str, user: User, namespace: str = TEAM) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name=f"{role}-{user.name}", namespace=namespace),
        subjects=(Subject(kind="User", api_group=GROUP, name=user.name),),
        role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=role),
    )


def cluster_binding(role: str, user: User) -> ClusterRoleBinding:
    return ClusterRoleBinding(
        metadata=ObjectMeta(name=f"{role}-{user.name}"),
        subjects=(Subject(kind="User", api_group=GROUP, name=user.name),),
        role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=role),
    )


def pod_on(node: str, name: str, references: str, namespace: str = TEAM) -> Pod:
    """Return a pod that refers to a secret, a config map, a claim and a service account."""
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {
            "nodeName": node,
            "serviceAccountName": references,
            "containers": [{"name": "main"}],
            "volumes": [
                {"name": "secret", "secret": {"secretName": references}},
                {"name": "config", "configMap": {"name": references}},
                {"name": "data", "persistentVolumeClaim": {"claimName": references}},
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": references}],
        },
    }
    value = decode_tree(tree, Pod).value
    assert isinstance(value, Pod)
    return value


def slice_of(node: str | None, name: str) -> ResourceSlice:
    spec = ResourceSliceSpec(driver="gpu.example.com", node_name=node)
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def volume_for(claim: str) -> PersistentVolume:
    """Return the volume of a claim, of the same name."""
    reference = ObjectReference(kind="PersistentVolumeClaim", namespace=TEAM, name=claim)
    spec = PersistentVolumeSpec(claim_ref=reference)
    return PersistentVolume(metadata=ObjectMeta(name=claim), spec=spec)


def cluster() -> Cluster:
    """Return a new cluster with its roles, the users' bindings, and a pod on each of two nodes."""
    policy = RBACPolicy(bootstrap_objects(GATES))
    for role in ("view", "edit", "admin"):
        policy.put(binding(role, USERS[role]))
    policy.put(cluster_binding("moorage:dra-driver", DRIVER))
    policy.put(cluster_binding("cluster-admin", USERS["cluster-admin"]))
    ties = NodeGraph()
    ties.put_pod(pod_on("node-a", "one", "one"))
    ties.put_pod(pod_on("node-b", "foreign", "foreign"))
    ties.put_slice(slice_of("node-a", "one"))
    ties.put_slice(slice_of("node-b", "foreign"))
    ties.put_volume(volume_for("one"))
    ties.put_volume(volume_for("foreign"))
    nodes = NodeAuthorizer(ties, node_rules(GATES))
    return Cluster(policy, ties, UnionAuthorizer(PrivilegedGroup(), nodes, policy))
