from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.authentication import BoundObjectReference, TokenRequest, TokenRequestSpec
from moorage.api.codec import decode_tree
from moorage.api.coordination import Lease
from moorage.api.core import Node, Pod
from moorage.api.core.node import NodeSpec
from moorage.api.core.placement import Taint
from moorage.api.core.pod import PodResourceClaimStatus
from moorage.api.meta import ObjectMeta
from moorage.apiserver.admission.node_restriction import (
    AdmissionAttributes,
    Operation,
    refuse_node_write,
)
from moorage.apiserver.auth.access import Allowed, NoOpinion, ResourceAccess
from moorage.apiserver.auth.node_authorizer import NodeGraph, references_of, references_with_self
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import Target
from tests.apiserver.cast import NODE, TEAM, USERS, cluster, pod_on, slice_of

CREATE, UPDATE, DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE
PODS = Target("", "v1", "pods", TEAM, "one")
OWN = Node(metadata=ObjectMeta(name="node-a", uid="node-uid"))


def on(verb: str, resource: str, name: str = "", **more: Any) -> ResourceAccess:
    group = "resource.k8s.io" if resource.startswith("resource") else ""
    namespace = "" if resource in ("nodes", "resourceslices") else TEAM
    access = ResourceAccess(NODE, verb, group, resource, namespace=namespace, name=name)
    return replace(access, **more)


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["pods", "resourceslices"])
def test_lists_are_for_those_who_ask_for_their_own_node_only(resource: str) -> None:
    authorizer = cluster().authorizer
    for node, expected in (("node-a", Allowed), ("node-b", NoOpinion), ("", NoOpinion)):
        fields = {"spec.nodeName": node} if node else {}
        decision = authorizer.authorize(on("list", resource, fields=fields))
        assert isinstance(decision, expected)


def test_a_claim_is_readable_from_when_a_pod_on_the_node_names_it_until_the_pod_is_gone() -> None:
    ties = NodeGraph()
    pod = pod_on("", "p", "one")
    ties.put_pod(pod)
    assert not ties.needs("node-a", "resourceclaims", TEAM, "one")
    ties.put_pod(replace(pod, spec=replace(pod.spec, node_name="node-a")))
    assert ties.needs("node-a", "resourceclaims", TEAM, "one")
    assert not ties.needs("node-a", "resourceclaims", "other", "one")
    ties.put_pod(pod_on("node-a", "q", "one"))
    ties.remove_pod(TEAM, "p")
    assert ties.needs("node-a", "resourceclaims", TEAM, "one")
    ties.remove_pod(TEAM, "q")
    assert not ties.needs("node-a", "resourceclaims", TEAM, "one")


def test_generated_claims_and_those_of_extended_resources_count() -> None:
    tree = {
        "metadata": {"name": "p", "namespace": TEAM},
        "spec": {
            "nodeName": "node-a",
            "resourceClaims": [
                {"name": "made", "resourceClaimTemplateName": "t"},
                {"name": "later", "resourceClaimTemplateName": "t"},
            ],
        },
        "status": {
            "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made-x"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "p-special"},
        },
    }
    names = {t.name for t in references_of(decode_tree(tree, Pod).value)}
    assert names == {"p-made-x", "p-special"}


def test_the_claim_of_an_ephemeral_volume_counts() -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    tree = {
        "metadata": {"name": "p", "namespace": TEAM},
        "spec": {"nodeName": "node-a", "volumes": volumes},
    }
    ties = NodeGraph()
    ties.put_pod(decode_tree(tree, Pod).value)
    assert ties.needs("node-a", "persistentvolumeclaims", TEAM, "p-scratch")
    assert not ties.needs("node-b", "persistentvolumeclaims", TEAM, "p-scratch")


def test_secrets_and_config_maps_are_found_wherever_a_pod_names_them() -> None:
    tree = {
        "metadata": {"name": "p"},
        "spec": {
            "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [
                {
                    "name": "i",
                    "envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}],
                }
            ],
            "containers": [
                {
                    "name": "c",
                    "env": [
                        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
                        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}},
                    ],
                }
            ],
            "volumes": [
                {
                    "name": "v",
                    "projected": {
                        "sources": [{"secret": {"name": "s3"}}, {"configMap": {"name": "c3"}}]
                    },
                },
                {"name": "w", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s4"}}},
            ],
        },
    }
    found = set(references_of(decode_tree(tree, Pod).value))
    assert {t.name for t in found if t.resource == "secrets"} == {"pull", "s1", "s2", "s3", "s4"}
    assert {t.name for t in found if t.resource == "configmaps"} == {"c1", "c2", "c3"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["secret", "secretName", "projected", "sources", "name", "csi"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(st.lists(JSON, max_size=3))
def test_volumes_of_any_shape_are_read(volumes: list[Any]) -> None:
    pod = Pod()
    spec = replace(pod.spec, volumes=tuple(volumes))
    for tie in references_of(replace(pod, spec=spec)):
        assert isinstance(tie.name, str)


def test_a_mirror_pod_gives_its_node_nothing() -> None:
    pod = pod_on("node-a", "p", "one")
    mirror = {"kubernetes.io/config.mirror": "hash"}
    pod = replace(pod, metadata=replace(pod.metadata, annotations=mirror))
    assert {tie.resource for tie in references_with_self(pod)} == {"pods"}


POD_NAMES = st.sampled_from(["p", "q", "r"])
STEPS = st.lists(
    st.tuples(POD_NAMES, st.sampled_from(["", "node-a", "node-b", "gone"]), POD_NAMES), max_size=12
)


@given(STEPS)
def test_ties_are_those_of_the_pods_that_there_are(steps: list[tuple[str, str, str]]) -> None:
    ties = NodeGraph()
    pods: dict[str, tuple[str, str]] = {}
    for name, node, reference in steps:
        if node == "gone":
            ties.remove_pod(TEAM, name)
            pods.pop(name, None)
        else:
            ties.put_pod(pod_on(node, name, reference))
            pods[name] = (node, reference)
    for node in ("node-a", "node-b"):
        for reference in ("p", "q", "r"):
            expected = (node, reference) in pods.values()
            assert ties.needs(node, "secrets", TEAM, reference) is expected


def test_an_unknown_node_may_do_nothing() -> None:
    nobody = User("system:node:", ("system:nodes",))
    access = replace(on("get", "nodes", "node-a"), user=nobody)
    assert cluster().authorizer.authorize(access) == NoOpinion(
        'unknown node for user "system:node:"'
    )


def test_a_user_with_the_name_of_a_node_but_not_its_group_is_no_node() -> None:
    access = replace(on("get", "secrets", "one"), user=User("system:node:node-a"))
    assert cluster().authorizer.authorize(access) == NoOpinion()


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        (
            on("get", "secrets", "other"),
            "no relationship found between node 'node-a' and this object",
        ),
        (on("list", "secrets"), "No Object name found"),
        (on("update", "secrets", "one"), "can only read resources of this type"),
        (on("list", "resourceclaims"), "can only get individual resources of this type"),
        (on("get", "nodes", "x"), "node 'node-a' cannot read 'x', only its own Node object"),
    ],
)
def test_a_refusal_says_what_nodes_may(access: ResourceAccess, reason: str) -> None:
    assert cluster().authorizer.authorize(access) == NoOpinion(reason)


# --- writing --------------------------------------------------------------------------------------


def refused(operation: Operation, target: Target, **more: Any) -> str | None:
    return refuse_node_write(NODE, AdmissionAttributes(operation, target, **more))


def test_others_are_not_restricted() -> None:
    change = AdmissionAttributes(CREATE, PODS, new=pod_on("node-b", "x", "y"))
    assert refuse_node_write(USERS["edit"], change) is None


SLICES = Target("resource.k8s.io", "v1", "resourceslices")


@pytest.mark.parametrize("node", ["node-a", "node-b", None])
def test_slices_are_made_and_deleted_for_ones_own_node_only(node: str | None) -> None:
    value = slice_of(node, "s")
    for operation, word, more in (
        (CREATE, "create", {"new": value}),
        (DELETE, "delete", {"old": value}),
    ):
        expected = (
            None
            if node == "node-a"
            else f"can only {word} ResourceSlice with the same NodeName as the requesting node"
        )
        assert refused(operation, SLICES, **more) == expected


def mirror_pod(**owner: Any) -> Pod:
    reference = {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "node-uid",
                 "controller": True, **owner}  # fmt: skip
    tree = {
        "metadata": {
            "name": "m",
            "namespace": TEAM,
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [reference],
        },
        "spec": {"nodeName": "node-a", "containers": [{"name": "c"}]},
    }
    value = decode_tree(tree, Pod).value
    assert isinstance(value, Pod)
    return value


@pytest.mark.parametrize(
    ("pod", "part"),
    [
        (mirror_pod(), None),
        (pod_on("node-a", "p", "x"), "can only create mirror pods"),
        (
            replace(mirror_pod(), spec=replace(mirror_pod().spec, node_name="node-b")),
            "set to itself",
        ),
        (mirror_pod(name="node-b"), "owner reference set to itself"),
        (mirror_pod(controller=False), "controller owner reference"),
        (mirror_pod(uid="old"), "UID mismatch: expected old got node-uid"),
        (mirror_pod(blockOwnerDeletion=True), "blockOwnerDeletion"),
        (
            replace(mirror_pod(), spec=replace(mirror_pod().spec, service_account_name="x")),
            "can not create pods that reference serviceaccounts",
        ),
    ],
)
def test_nodes_make_mirror_pods_of_their_own_only(pod: Pod, part: str | None) -> None:
    reason = refused(CREATE, PODS, new=pod, node=OWN)
    assert reason is None if part is None else part in str(reason)


def test_pods_of_other_nodes_are_neither_deleted_nor_evicted_nor_reported_on() -> None:
    own, foreign = pod_on("node-a", "one", "x"), pod_on("node-b", "one", "x")
    status, eviction = PODS._replace(subresource="status"), PODS._replace(subresource="eviction")
    assert refused(DELETE, PODS, old=own) is None
    assert refused(UPDATE, status, new=own, old=own) is None
    assert refused(CREATE, eviction, pod=own) is None
    assert "delete pods" in str(refused(DELETE, PODS, old=foreign))
    assert "update pod status" in str(refused(UPDATE, status, new=foreign, old=foreign))
    assert "evict pods" in str(refused(CREATE, eviction, pod=foreign))
    assert "evict pods" in str(refused(CREATE, eviction, pod=None))


def test_a_node_cannot_give_itself_claims_through_a_pods_status() -> None:
    own = pod_on("node-a", "one", "x")
    taken = (PodResourceClaimStatus(name="gpu", resource_claim_name="foreign"),)
    new = replace(own, status=replace(own.status, resource_claim_statuses=taken))
    target = PODS._replace(subresource="status")
    expected = 'node "node-a" cannot update resource claim statues'
    assert refused(UPDATE, target, new=new, old=own) == expected


NODES = Target("", "v1", "nodes", name="node-a")


@pytest.mark.parametrize(
    ("label", "is_allowed"),
    [
        ("rack", True),
        ("example.com/rack", True),
        ("kubernetes.io/hostname", True),
        ("gpu.node.kubernetes.io/count", True),
        ("node-role.kubernetes.io/control-plane", False),
        ("x.k8s.io/y", False),
        ("node-restriction.kubernetes.io/a", False),
        ("team.node-restriction.kubernetes.io/a", False),
    ],
)
def test_nodes_set_only_some_labels_on_themselves(label: str, is_allowed: bool) -> None:
    new = Node(metadata=ObjectMeta(name="node-a", labels={label: "x"}))
    assert (refused(CREATE, NODES, new=new) is None) is is_allowed
    assert (refused(UPDATE, NODES, new=new, old=OWN) is None) is is_allowed
    assert refused(UPDATE, NODES, new=new, old=new) is None


def test_nodes_touch_neither_their_taints_nor_other_nodes() -> None:
    tainted = Node(
        metadata=OWN.metadata, spec=NodeSpec(taints=(Taint(key="k", effect="NoExecute"),))
    )
    expected = 'node "node-a" is not allowed to modify taints'
    assert refused(UPDATE, NODES, new=tainted, old=OWN) == expected
    other = NODES._replace(name="node-b")
    expected = 'node "node-a" is not allowed to modify node "node-b"'
    assert refused(UPDATE, other, new=OWN, old=OWN) == expected


def test_leases_are_of_ones_own_name_in_their_namespace() -> None:
    target = Target("coordination.k8s.io", "v1", "leases", "kube-node-lease")
    own, other = (Lease(metadata=ObjectMeta(name=name)) for name in ("node-a", "node-b"))
    assert refused(CREATE, target, new=own) is None
    assert refused(CREATE, target, new=other) is not None
    assert refused(UPDATE, target._replace(name="node-a"), new=own, old=own) is None
    assert refused(CREATE, target._replace(namespace=TEAM), new=own) is not None


TOKENS = Target("", "v1", "serviceaccounts", TEAM, "one", "token")


def token_request(audiences: tuple[str, ...] = (), **bound: Any) -> TokenRequest:
    reference = BoundObjectReference(api_version="v1", kind="Pod", **bound) if bound else None
    return TokenRequest(spec=TokenRequestSpec(audiences=audiences, bound_object_ref=reference))


def with_token_volume(pod: Pod, audience: str = "") -> Pod:
    source = {"serviceAccountToken": {"path": "token", "audience": audience}}
    volume = {"name": "t", "projected": {"sources": [source]}}
    return replace(pod, spec=replace(pod.spec, volumes=(*pod.spec.volumes, volume)))


@pytest.mark.parametrize(
    ("request_", "pod", "part"),
    [
        (token_request(name="p", uid="uid-p"), with_token_volume(pod_on("node-a", "p", "x")), None),
        (token_request(), None, "not bound to a pod"),
        (token_request(name="p"), None, "without a uid"),
        (token_request(name="p", uid="uid-p"), None, "not found"),
        (token_request(name="p", uid="old"), pod_on("node-a", "p", "x"), "does not match"),
        (token_request(name="p", uid="uid-p"), pod_on("node-b", "p", "x"), "different node"),
        (
            token_request(("vault",), name="p", uid="uid-p"),
            with_token_volume(pod_on("node-a", "p", "x")),
            'not authorized to request tokens for audience "vault"',
        ),
        (
            token_request(("vault",), name="p", uid="uid-p"),
            with_token_volume(pod_on("node-a", "p", "x"), "vault"),
            None,
        ),
    ],
)
def test_nodes_get_tokens_of_their_pods_only(
    request_: TokenRequest, pod: Pod | None, part: str | None
) -> None:
    reason = refused(CREATE, TOKENS, new=request_, pod=pod)
    assert reason is None if part is None else part in str(reason)
