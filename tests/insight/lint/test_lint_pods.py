from __future__ import annotations

from typing import Any

import pytest
import yaml

from moorage.insight.lint import RULES, Severity
from moorage.insight.lint.rule import GROUPS, PODS
from tests.insight.linting import context_of, findings, rules

CLAIM_VERSION = "resource.k8s.io/v1"
CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/gpu"
LIMITS = {"limits": {"example.com/gpu": "1"}}


def text_of(
    version: str, kind: str, name: str, spec: dict[str, Any], namespace: str = "", **more: Any
) -> str:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= more.pop("metadata", {})
    tree = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **more}
    return yaml.safe_dump(tree)


def container(*uses: str | dict[str, str], **resources: Any) -> dict[str, Any]:
    claims = [{"name": use} if isinstance(use, str) else use for use in uses]
    return {"name": "c", "image": "i", "resources": {"claims": claims, **resources}}


def by_name(claim: str = "gpu", entry: str = "gpu") -> dict[str, str]:
    return {"name": entry, "resourceClaimName": claim}


def by_template(template: str = "gpu", entry: str = "gpu") -> dict[str, str]:
    return {"name": entry, "resourceClaimTemplateName": template}


def pod_spec(*entries: dict[str, str], **more: Any) -> dict[str, Any]:
    names = (entry["name"] for entry in entries)
    return {"resourceClaims": list(entries), "containers": [container(*names)], **more}


def pod(spec: dict[str, Any], name: str = "pod", **more: Any) -> str:
    return text_of("v1", "Pod", name, spec, **more)


def deployment(spec: dict[str, Any], replicas: int, name: str = "deploy") -> str:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    selector = {"matchLabels": {"app": "a"}}
    whole = {"replicas": replicas, "selector": selector, "template": template}
    return text_of("apps/v1", "Deployment", name, whole)


def claim_spec(**exactly: Any) -> dict[str, Any]:
    request = {"name": "one", "exactly": {"deviceClassName": "gpu", **exactly}}
    return {"devices": {"requests": [request]}}


def claim(name: str = "gpu", namespace: str = "", **more: Any) -> str:
    return text_of(CLAIM_VERSION, "ResourceClaim", name, claim_spec(), namespace, **more)


def template(name: str = "gpu", namespace: str = "") -> str:
    spec = {"spec": claim_spec()}
    return text_of(CLAIM_VERSION, "ResourceClaimTemplate", name, spec, namespace)


def device_class(name: str = "gpu", **spec: Any) -> str:
    return text_of(CLAIM_VERSION, "DeviceClass", name, spec)


def node(name: str = "node-1", **allocatable: str) -> str:
    resources = {key.replace("_", "/"): value for key, value in allocatable.items()}
    return text_of("v1", "Node", name, {}, status={"allocatable": resources})


def group(name: str = "grp", *entries: dict[str, str], minimum: int = 1) -> str:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "resourceClaims": list(entries)}
    return text_of("scheduling.k8s.io/v1beta1", "PodGroup", name, spec)


IN_GROUP = {"schedulingGroup": {"podGroupName": "grp"}}
VOLUME = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}]}
ALLOCATED: dict[str, Any] = {"status": {"allocation": {"devices": {"results": []}}}}

# rule: what it finds something in, and what is like it and good
EXAMPLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "unknown-extended-resource": (
        (pod({"containers": [container(limits={CLASS_RESOURCE: "1"})]}), device_class("other")),
        (pod({"containers": [container(limits={CLASS_RESOURCE: "1"})]}), device_class()),
    ),
    "extended-resource-twice": (
        (
            pod({"containers": [container(**LIMITS)]}),
            device_class(extendedResourceName="example.com/gpu"),
            node(**{"example.com_gpu": "2"}),
        ),
        (
            pod({"containers": [container(**LIMITS)]}),
            device_class(extendedResourceName="example.com/gpu"),
            node(),
        ),
    ),
    "unknown-group": (
        (pod({"containers": [container()], **IN_GROUP}), group("gpr")),
        (pod({"containers": [container()], **IN_GROUP}), group()),
    ),
    "gang-too-small": (
        (deployment({"containers": [container()], **IN_GROUP}, 2), group(minimum=3)),
        (deployment({"containers": [container()], **IN_GROUP}, 3), group(minimum=3)),
    ),
    "unmodelled": (
        (pod({"containers": [container()], **VOLUME}),),
        (pod({"containers": [container()], "volumes": [{"name": "v", "emptyDir": {}}]}),),
    ),
    "unlisted-claim": (
        (pod({"containers": [container("gpu")]}),),
        (pod(pod_spec(by_name())),),
    ),
    "unused-pod-claim": (
        (pod({"resourceClaims": [by_name()], "containers": [container()]}),),
        (pod({"resourceClaims": [by_name()], "initContainers": [container("gpu")]}),),
    ),
    "unknown-claim": (
        (pod(pod_spec(by_name("gup"))), claim(), device_class()),
        (pod(pod_spec(by_name())), claim(), device_class()),
    ),
    "unknown-template": (
        (pod(pod_spec(by_template())), template(namespace="other"), device_class()),
        (pod(pod_spec(by_template())), template(), device_class()),
    ),
    "unknown-request": (
        (
            pod(
                {
                    "resourceClaims": [by_name()],
                    "containers": [container({"name": "gpu", "request": "two"})],
                }
            ),
            claim(),
        ),
        (
            pod(
                {
                    "resourceClaims": [by_name()],
                    "containers": [container({"name": "gpu", "request": "one"})],
                }
            ),
            claim(),
        ),
    ),
    "template-twice": (
        (pod(pod_spec(by_template(), by_template(entry="more"))),),
        (pod(pod_spec(by_template(), by_template("other", entry="more"))),),
    ),
    "shared-by-replicas": (
        (deployment(pod_spec(by_name()), 2),),
        (deployment(pod_spec(by_template()), 2),),
    ),
    "too-many-users": (
        tuple(pod(pod_spec(by_name()), name=f"pod-{i}") for i in range(257)),
        tuple(pod(pod_spec(by_name()), name=f"pod-{i}") for i in range(256)),
    ),
    "group-claim-mismatch": (
        (pod(pod_spec(by_name(), **IN_GROUP)), group("grp", by_name("other"))),
        (pod(pod_spec(by_name(), **IN_GROUP)), group("grp", by_name())),
    ),
    "bypasses-scheduler": (
        (pod(pod_spec(by_name(), nodeName="node-1")), claim()),
        (pod(pod_spec(by_name(), nodeName="node-1")), claim(**ALLOCATED)),
    ),
}


def test_every_rule_about_pods_and_groups_has_its_examples() -> None:
    assert set(EXAMPLES) == {rule.id for rule in RULES if rule.about in (PODS, GROUPS)}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_bad_example_is_found(rule: str) -> None:
    bad, _ = EXAMPLES[rule]
    assert rules(*bad) == [rule]


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_good_example_is_not_found(rule: str) -> None:
    _, good = EXAMPLES[rule]
    assert rules(*good) == []


# --- claims -------------------------------------------------------------------------------


def test_devices_reserved_for_nobody_are_noted_with_the_command_that_frees_them() -> None:
    (finding,) = findings(claim(**ALLOCATED))
    assert (finding.rule, finding.severity) == ("unreserved-devices", Severity.NOTE)
    assert finding.message == "has devices, and is reserved for nobody"
    assert finding.remedy.endswith(
        "kubectl patch resourceclaim gpu --subresource=status --type=merge "
        """-p '{"status":{"allocation":null}}'"""
    )


def test_devices_that_wait_for_a_pod_that_is_given_are_not_noted() -> None:
    assert rules(pod(pod_spec(by_name())), claim(**ALLOCATED)) == []


def test_a_claim_of_another_namespace_is_named() -> None:
    (finding,) = findings(pod(pod_spec(by_name())), claim(namespace="other"))
    assert finding.rule == "unknown-claim"
    assert finding.message == "there is no ResourceClaim default/gpu among those given"
    assert finding.remedy.startswith("namespace other has one")


def test_the_place_in_a_template_of_pods_is_found() -> None:
    (finding,) = findings(deployment({"containers": [container("gpu")]}, 1))
    assert (finding.kind, finding.severity) == ("Deployment", Severity.ERROR)
    assert finding.field == "spec.template.spec.containers[0].resources.claims[0].name"


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
    ],
)
def test_all_that_make_pods_are_looked_at(version: str, kind: str) -> None:
    spec = {"template": {"spec": {"containers": [container("gpu")]}}}
    assert rules(text_of(version, kind, "maker", spec)) == ["unlisted-claim"]


def test_a_claim_that_was_made_needs_its_template_no_more() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "pod-gpu-x"}]}
    made = pod(pod_spec(by_template("gone"), nodeName="node-1"), status=status)
    assert rules(made, template()) == []


def test_pods_that_name_their_node_get_no_claim_from_a_template() -> None:
    text = pod(pod_spec(by_template(), nodeName="node-1"))
    assert rules(text, template()) == ["bypasses-scheduler"]


def test_a_controller_speaks_for_its_pods() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deploy", "controller": True}
    owned = pod({"containers": [container("gpu")]}, metadata={"ownerReferences": [owner]})
    maker = deployment({"containers": [container("gpu")]}, 1)
    assert [finding.kind for finding in findings(owned, maker)] == ["Deployment"]
    assert [finding.kind for finding in findings(owned)] == ["Pod"]


def test_a_pod_that_has_run_to_its_end_is_passed_over() -> None:
    text = pod(pod_spec(by_name(), nodeName="node-1"), status={"phase": "Succeeded"})
    assert rules(text, claim()) == []


def test_a_group_is_one_user_of_its_claim() -> None:
    pods = [pod(pod_spec(by_name(), **IN_GROUP), name=f"pod-{i}") for i in range(257)]
    assert rules(*pods, group("grp", by_name())) == []


def test_an_entry_with_another_name_than_the_groups_is_told() -> None:
    text = pod(pod_spec(by_template(entry="mine"), **IN_GROUP))
    (finding,) = findings(text, group("grp", by_template(entry="ours")))
    assert finding.rule == "group-claim-mismatch"
    assert "because their name differs" in finding.message


def test_group_claims_need_their_gate() -> None:
    off = context_of("DRAWorkloadResourceClaims=false")
    texts = (pod(pod_spec(by_name(), **IN_GROUP)), group("grp", by_name()))
    assert "group-claim-mismatch" in rules(*texts, context=off)


# --- the rest -----------------------------------------------------------------------------


def test_an_extended_resource_that_nothing_has_is_told_where_nodes_are_given() -> None:
    text = pod({"containers": [container(**LIMITS)]})
    named = device_class(extendedResourceName="example.com/gpus")
    assert rules(text, named) == []
    (finding,) = findings(text, named, node())
    assert finding.rule == "unknown-extended-resource"
    assert finding.remedy == 'did you mean "example.com/gpus"?'


def test_extended_resources_need_their_gate() -> None:
    text = pod({"containers": [container(limits={CLASS_RESOURCE: "1"})]})
    off = context_of("DRAExtendedResource=false", version="1.36")
    assert rules(text, device_class(), context=off) == ["unknown-extended-resource"]


def test_admin_access_needs_a_label_of_the_namespace() -> None:
    spec = claim_spec(adminAccess=True)
    admin = text_of(CLAIM_VERSION, "ResourceClaim", "admin", spec, "tools")
    plain = text_of("v1", "Namespace", "tools", {})
    label = {"labels": {"resource.kubernetes.io/admin-access": "true"}}
    assert rules(admin) == []
    assert rules(admin, plain) == ["admin-access-namespace"]
    assert rules(admin, text_of("v1", "Namespace", "tools", {}, metadata=label)) == []
